/** A button that opens a dialog. The administrator fills in the fields of an action there, and confirms it. */
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { announce, ErrorMessage } from './messages.tsx';

interface ActionProps {
  /** Text of the button that opens the dialog. */
  readonly label: string;
  /** Name of the button for screen readers, where the text alone would not say what it is about. */
  readonly about?: string | undefined;
  readonly title: string;
  /** Text of the button that performs the action; by default the label. */
  readonly confirm?: string;
  readonly kind?: 'plain' | 'primary' | 'danger';
  /** Performs the action. @returns what to announce when it is done; empty: nothing */
  readonly action: (fields: FormData) => Promise<string>;
  readonly onDone?: () => void;
  readonly children?: ComponentChildren;
}

/** A button that opens a dialog with a form. Submitting the form performs an action. */
export function Action({
  label,
  about,
  title,
  confirm = label,
  kind = 'plain',
  children,
  ...props
}: ActionProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const [isOpen, setOpen] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<Error>();

  const open = () => {
    setError(undefined);
    setOpen(true);
  };
  // showModal() puts the focus on the first field, so the fields must be rendered before.
  useLayoutEffect(() => {
    if (isOpen) dialog.current?.showModal();
  }, [isOpen]);
  const close = () => dialog.current?.close();
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setError(undefined);
    try {
      const done = await props.action(fields);
      close();
      if (done !== '') announce(done);
      props.onDone?.();
    } catch (failure) {
      setError(failure as Error);
    } finally {
      setBusy(false);
    }
  };

  return (
    <>
      <button type="button" class={kind} onClick={open} aria-label={about}>
        {label}
      </button>
      <dialog ref={dialog} aria-labelledby={titleId} onClose={() => setOpen(false)}>
        {isOpen && (
          <form onSubmit={submit}>
            <h2 id={titleId}>{title}</h2>
            {children}
            {error && <ErrorMessage error={error} />}
            <div class="actions">
              <button type="button" onClick={close}>
                Cancel
              </button>
              <button type="submit" class={kind === 'plain' ? 'primary' : kind} disabled={isBusy}>
                {isBusy ? 'Please wait …' : confirm}
              </button>
            </div>
          </form>
        )}
      </dialog>
    </>
  );
}

/** Returns the text of a form field without surrounding white space. */
export const textOf = (fields: FormData, name: string): string => String(fields.get(name) ?? '').trim();
