/** Loads data of the server for a page. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

export interface Loaded<Value> {
  /** The value that was loaded last. It stays while a newer value is loaded, also after an input has changed. */
  readonly value: Value | undefined;
  /** The error of the last attempt; absent after an input has changed. */
  readonly error: Error | undefined;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

interface State<Value> {
  readonly value: Value | undefined;
  readonly error: Error | undefined;
  readonly isLoading: boolean;
}

/**
 * Loads a value when the page is shown and when an input changes.
 * @param every milliseconds after which the value is loaded again while the page is visible; absent: never
 */
export function useLoaded<Value>(
  load: (signal: AbortSignal) => Promise<Value>,
  inputs: readonly unknown[],
  every?: number,
): Loaded<Value> {
  const [state, setState] = useState<State<Value>>({ value: undefined, error: undefined, isLoading: true });
  const [reloads, setReloads] = useState(0);
  const newest = useRef(load);
  newest.current = load;
  const key = JSON.stringify(inputs);
  const lastKey = useRef(key);
  const reload = useCallback(() => setReloads((last) => last + 1), []);

  useEffect(() => {
    const abort = new AbortController();
    const hasNewKey = lastKey.current !== key;
    lastKey.current = key;
    setState((last) => ({ ...last, isLoading: true, ...(hasNewKey && { error: undefined }) }));
    newest.current(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) setState({ value, error: undefined, isLoading: false });
      },
      (error: Error) => {
        if (!abort.signal.aborted) setState((last) => ({ ...last, error, isLoading: false }));
      },
    );
    return () => abort.abort();
  }, [key, reloads]);

  useEffect(() => {
    if (every === undefined) return undefined;
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') reload();
    }, every);
    return () => clearInterval(timer);
  }, [every, reload]);

  return { ...state, reload };
}
