/**
 * Styles by meaning, and how each looks at each colour depth. Drawing code names meanings (`Style.bad`), never colours;
 * the background is always the user's own, so light and dark terminals both work. With NO_COLOR the attributes (bold,
 * dim, inverse) stay and the colours are dropped.
 */

export type ColorDepth = "none" | "16" | "256" | "truecolor";

interface Look {
  readonly rgb?: readonly [number, number, number];
  /** SGR number of the nearest of the 16 colours, which users theme themselves. */
  readonly ansi?: number;
  readonly attributes?: readonly number[];
}

const BOLD = 1;
const DIM = 2;
const INVERSE = 7;

/** Equally far from white and from black: 4.4:1 on a light terminal, 4:1 on a dark one. */
const GREEN = { rgb: [42, 136, 67], ansi: 32 } as const;
const RED = { rgb: [212, 67, 71], ansi: 31 } as const;
const AMBER = { rgb: [160, 109, 13], ansi: 33 } as const;
const BLUE = { rgb: [58, 117, 215], ansi: 34 } as const;
const TEAL = { rgb: [15, 134, 120], ansi: 36 } as const;
const MAGENTA = { rgb: [185, 74, 178], ansi: 35 } as const;

const looks = {
  text: {},
  dim: { attributes: [DIM] },
  bold: { attributes: [BOLD] },
  brand0: { rgb: [66, 133, 244], ansi: 34, attributes: [BOLD] },
  brand1: { rgb: [54, 141, 220], ansi: 34, attributes: [BOLD] },
  brand2: { rgb: [42, 149, 196], ansi: 36, attributes: [BOLD] },
  brand3: { rgb: [30, 157, 172], ansi: 36, attributes: [BOLD] },
  brand4: { rgb: [18, 165, 148], ansi: 36, attributes: [BOLD] },
  rule: { attributes: [DIM] },
  heading: { attributes: [BOLD] },
  key: { ...TEAL, attributes: [BOLD] },
  good: GREEN,
  bad: { ...RED, attributes: [BOLD] },
  warn: AMBER,
  goodBadge: { ...GREEN, attributes: [BOLD, INVERSE] },
  badBadge: { ...RED, attributes: [BOLD, INVERSE] },
  warnBadge: { ...AMBER, attributes: [BOLD, INVERSE] },
  infoBadge: { ...BLUE, attributes: [BOLD, INVERSE] },
  bar: TEAL,
  barBack: { attributes: [DIM] },
  rate: BLUE,
  rateFill: { rgb: [41, 84, 156], ansi: 34 },
  failed: RED,
  /** Neither a measurement nor a verdict: the colour of text. */
  target: { attributes: [BOLD] },
  p50: TEAL,
  p95: AMBER,
  p99: MAGENTA,
} as const satisfies Record<string, Look>;

type StyleName = keyof typeof looks;
export type StyleId = number;

const names = Object.keys(looks) as StyleName[];

/** Style ids are small integers: a grid has one byte per cell. */
export const Style = Object.fromEntries(names.map((name, id) => [name, id])) as Readonly<
  Record<StyleName, StyleId>
>;

export const STYLE_COUNT = names.length;

/** For each style the SGR sequence that sets it from any other style. */
export function sgrTable(depth: ColorDepth): readonly string[] {
  return names.map((name) => {
    const look: Look = looks[name];
    const codes: number[] = [0, ...(look.attributes ?? []), ...colorCodes(look, depth)];
    return `\x1b[${codes.join(";")}m`;
  });
}

function colorCodes({ rgb, ansi }: Look, depth: ColorDepth): number[] {
  if (rgb === undefined || ansi === undefined || depth === "none") return [];
  if (depth === "16") return [ansi];
  if (depth === "truecolor") return [38, 2, ...rgb];
  const [red, green, blue] = rgb.map((channel) => Math.round((channel / 255) * 5));
  return [38, 5, 16 + 36 * (red ?? 0) + 6 * (green ?? 0) + (blue ?? 0)];
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** NO_COLOR and FORCE_COLOR first, then the capabilities of the terminal. */
export function colorDepth(env: Environment): ColorDepth {
  if ((env["NO_COLOR"] ?? "") !== "") return "none";
  switch (env["FORCE_COLOR"]) {
    case "0":
    case "false":
      return "none";
    case "1":
      return "16";
    case "2":
      return "256";
    case "3":
      return "truecolor";
    default:
  }
  const term = env["TERM"] ?? "";
  if (term === "dumb") return "none";
  if (/^(truecolor|24bit)$/i.test(env["COLORTERM"] ?? "")) return "truecolor";
  if (/-direct$|kitty|alacritty|ghostty|wezterm/.test(term)) return "truecolor";
  if (/-256(color)?$/.test(term)) return "256";
  return "16";
}
