/**
 * Ctrl-C on a job that runs elsewhere. On a terminal it asks: cancel the job, leave it running, or continue. Without
 * one it cancels, as SIGTERM does everywhere. After a cancel, the next signal ends the command at once.
 */

type Choice = "cancel" | "detach" | "goOn";

const ANSWERS: Readonly<Record<string, Choice>> = { c: "cancel", d: "detach", g: "goOn" };
const CTRL_C = "\x03";
export const QUESTION =
  "interrupted: c cancels the job, d leaves it running and ends here, g goes on";

/** Part of a terminal's input that is needed. */
interface Keyboard {
  readonly isTTY?: boolean;
  readonly isRaw?: boolean;
  setRawMode?(raw: boolean): unknown;
  on(event: "data", listener: (chunk: Uint8Array | string) => void): unknown;
  off(event: "data", listener: (chunk: Uint8Array | string) => void): unknown;
  resume(): unknown;
  pause(): unknown;
}

interface InterruptionPorts {
  readonly keyboard: Keyboard;
  readonly say: (line: string) => void;
  readonly cancel: () => void;
  /** Ends here; the job continues, or its cancel is under way. */
  readonly leave: (how: "detached" | "cancelling") => void;
}

export class Interruption {
  readonly #ports: InterruptionPorts;
  #cancelling = false;
  /** Withdraws the question. */
  #unask: (() => void) | null = null;

  constructor(ports: InterruptionPorts) {
    this.#ports = ports;
  }

  /** SIGINT. */
  interrupt(): void {
    const asks = this.#ports.keyboard.isTTY === true && this.#unask === null;
    if (asks && !this.#cancelling) this.#ask();
    else this.cancel();
  }

  /** Without asking: SIGTERM, or the second Ctrl-C. */
  cancel(): void {
    this.end();
    if (this.#cancelling) {
      this.#ports.leave("cancelling");
      return;
    }
    this.#cancelling = true;
    this.#ports.say(
      "cancelling: waiting for work in flight; Ctrl-C again ends this command at once",
    );
    this.#ports.cancel();
  }

  /** Restores the terminal. */
  end(): void {
    this.#unask?.();
    this.#unask = null;
  }

  #ask(): void {
    const { keyboard, say } = this.#ports;
    say(QUESTION);
    // A live picture reads keys already, and turns Ctrl-C into a signal.
    const isOurs = keyboard.isRaw !== true;
    const listen = (chunk: Uint8Array | string): void => {
      for (const key of String(chunk)) {
        if (key === CTRL_C && isOurs) this.interrupt();
        const choice = ANSWERS[key.toLowerCase()];
        if (choice !== undefined && this.#unask !== null) this.#choose(choice);
      }
    };
    if (isOurs) keyboard.setRawMode?.(true);
    keyboard.on("data", listen);
    keyboard.resume();
    this.#unask = () => {
      keyboard.off("data", listen);
      if (!isOurs) return;
      keyboard.setRawMode?.(false);
      keyboard.pause();
    };
  }

  #choose(choice: Choice): void {
    this.end();
    if (choice === "cancel") this.cancel();
    else if (choice === "detach") this.#ports.leave("detached");
    else this.#ports.say("going on");
  }
}
