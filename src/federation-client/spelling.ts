import { toDocumentsSpelling, toEcosystemSpelling } from '../kernel/http/index.ts';

/** Which of the two namespaces a server answers in. Paths in the code are in the documents' spelling. */
export type Spelling = 'documents' | 'ecosystem';

/** A path and query as a server of that spelling knows it. */
export const spell = (path: string, spelling: Spelling) =>
  spelling === 'ecosystem' ? toEcosystemSpelling(path) : toDocumentsSpelling(path);

/**
 * Spellings to try, in their order. What the ecosystem speaks comes first where nothing is known; a server that was
 * found to speak the other one may have been replaced since.
 */
export function spellingsToTry(known: Spelling | undefined): readonly Spelling[] {
  if (known === 'ecosystem') return ['ecosystem'];
  return known === 'documents' ? ['documents', 'ecosystem'] : ['ecosystem', 'documents'];
}
