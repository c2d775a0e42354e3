import { toDocumentsSpelling, toEcosystemSpelling } from '../kernel/http/index.ts';

/** Which of the two namespaces a server answers in. Paths in the code are in that of the documents. */
export type Spelling = 'documents' | 'ecosystem';

/** Returns a path and query in the given namespace. */
export const spell = (path: string, spelling: Spelling) =>
  spelling === 'ecosystem' ? toEcosystemSpelling(path) : toDocumentsSpelling(path);

/**
 * Returns the namespaces to try, in order. The ecosystem's comes first when nothing is known. A server that
 * used the documents' namespace may have been replaced by different software, so both are tried for it.
 */
export function spellingsToTry(known: Spelling | undefined): readonly Spelling[] {
  if (known === 'ecosystem') return ['ecosystem'];
  return known === 'documents' ? ['documents', 'ecosystem'] : ['ecosystem', 'documents'];
}
