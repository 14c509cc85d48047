/** Asks for confirmation of actions that cannot be undone, and shows the outcome. */

import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { errorText } from "../../src/core/base/error-text.ts";

interface Deed {
  /** The action, as a question. */
  readonly question: string;
  readonly button: string;
  readonly danger: boolean;
  /** Performs the action and returns what was done. */
  readonly perform: () => Promise<string>;
}

interface Deeds {
  readonly ask: (deed: Deed) => void;
  /** Performs without confirmation. */
  readonly perform: (work: () => Promise<string>) => void;
}

export const DeedsContext = createContext<Deeds>({ ask: () => {}, perform: () => {} });

export function useDeeds(): Deeds {
  return useContext(DeedsContext);
}

interface Outcome {
  readonly text: string;
  readonly bad: boolean;
}

const OUTCOME_SHOWN_MS = 8_000;

export function useDeedsState() {
  const [asked, setAsked] = useState<Deed | null>(null);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  useEffect(() => {
    if (outcome === null) return;
    const timer = setTimeout(() => setOutcome(null), OUTCOME_SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const perform = (work: () => Promise<string>): void => {
    work().then(
      (text) => setOutcome({ text, bad: false }),
      (error: unknown) => setOutcome({ text: errorText(error), bad: true }),
    );
  };
  return { deeds: { ask: setAsked, perform }, asked, outcome, close: () => setAsked(null) };
}

interface DialogProps {
  readonly deed: Deed;
  readonly close: () => void;
  readonly perform: Deeds["perform"];
}

export function ConfirmDialog({ deed, close, perform }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="card" aria-labelledby="confirm-question" onClose={close}>
      <form
        method="dialog"
        onSubmit={() => {
          perform(deed.perform);
        }}
      >
        <p id="confirm-question">{deed.question}</p>
        <p class="dialog-buttons">
          <button type="button" class="button" onClick={() => dialog.current?.close()}>
            Back
          </button>
          <button type="submit" class={deed.danger ? "button danger" : "button"}>
            {deed.button}
          </button>
        </p>
      </form>
    </dialog>
  );
}

/** Present from the start, so that a screen reader announces new content. */
export function OutcomeLine({ outcome }: { readonly outcome: Outcome | null }) {
  return (
    <div class="outcome" role="status">
      {outcome !== null && <p class={outcome.bad ? "bad" : "good"}>{outcome.text}</p>}
    </div>
  );
}
