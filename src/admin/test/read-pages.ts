/** The keys of the rows of one page, and the parameter `from` of the next page; `undefined` for the last page. */
export interface KeysOfPage {
  readonly keys: readonly string[];
  readonly next: string | number | undefined;
}

/** Maximum number of rows on all pages, so that a test of a list whose pages never end fails. */
const maxKeys = 100;

/**
 * Reads a list page by page, and changes it between the pages.
 * @param read reads the page with the parameter `from`; `undefined` for the first page
 * @param change is called between two pages, with the keys of all pages so far
 * @returns the keys of all pages, in the order of the pages
 */
export async function readPagesWhileChanging(
  read: (from: string | number | undefined) => Promise<KeysOfPage>,
  change: (soFar: readonly string[]) => Promise<unknown>,
): Promise<string[]> {
  const keys: string[] = [];
  for (let from: string | number | undefined; ; ) {
    const page = await read(from);
    keys.push(...page.keys);
    if (page.next === undefined) return keys;
    if (keys.length > maxKeys) throw new Error('the list does not end');
    from = page.next;
    await change(keys);
  }
}
