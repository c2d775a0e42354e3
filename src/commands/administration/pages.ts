import type { Session } from './session.ts';

type Row = Readonly<Record<string, unknown>>;

/** Maximum number of rows of a page. */
const pageSize = 500;

/**
 * Reads a list of the admin API page by page.
 * @param query parameters besides `from` and `limit`; `undefined` ones are left out
 * @param names the members of the response that contain the rows, and the `from` of the next page
 */
export async function* pagesOf(
  session: Session,
  path: string,
  query: Readonly<Record<string, string | undefined>>,
  names: { readonly rows: string; readonly next: string },
): AsyncGenerator<readonly Row[]> {
  for (let from: string | undefined = '0'; from !== undefined; ) {
    const parameters = new URLSearchParams({ from, limit: String(pageSize) });
    for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, value);
    const page = await session.call('GET', `${path}?${parameters}`);
    yield page[names.rows] as Row[];
    const next = page[names.next];
    from = next === undefined || next === null ? undefined : String(next);
  }
}
