/** The page that the fragment of the address names, for example `#/media/%40anna%3Aexample.org?order=upload_name`. */
import { useEffect, useState } from 'preact/hooks';

export interface PageAddress {
  /** Name of the page, for example `users`. */
  readonly page: string;
  /** Id of the user, room, report or server that the page shows; `undefined` for lists. */
  readonly id: string | undefined;
  readonly query: Readonly<Record<string, string>>;
}

/** Returns the address of a page for links. */
export function addressOf(page: string, id?: string, query: Readonly<Record<string, string>> = {}): string {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '')).toString();
  return `#/${page}${id === undefined ? '' : `/${encodeURIComponent(id)}`}${search && `?${search}`}`;
}

/** Parses the fragment of an address. */
export function readAddress(fragment: string): PageAddress {
  const [path = '', search = ''] = fragment.replace(/^#?\/?/, '').split('?', 2);
  const [page = '', id] = path.split('/', 2);
  return {
    page,
    id: id === undefined || id === '' ? undefined : decoded(id),
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

/** Returns the page that the fragment of the address names, and renders again when it changes. */
export function usePageAddress(): PageAddress {
  const [address, setAddress] = useState(() => readAddress(location.hash));
  useEffect(() => {
    const changed = () => setAddress(readAddress(location.hash));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return address;
}

/**
 * Changes the query of the page's address. Does nothing when the browser has left the page: a delayed search must not
 * lead back to the page.
 * @param keepsHistory whether the back button of the browser returns to the previous query
 */
export function setQuery(
  address: PageAddress,
  changes: Readonly<Record<string, string>>,
  keepsHistory = true,
): void {
  const current = readAddress(location.hash);
  if (current.page !== address.page || current.id !== address.id) return;
  const target = addressOf(address.page, address.id, { ...address.query, ...changes });
  if (target === location.hash) return;
  if (keepsHistory) location.hash = target;
  else location.replace(target);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
