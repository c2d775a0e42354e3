import { toDeclaredSpelling, toMatrixSpelling } from '../kernel/http/index.ts';

/**
 * The prefix of the paths that a server answers: `documents` stands for `/_proto`, the prefix in the interface document
 * and in the code, `ecosystem` for `/_matrix`, the prefix in the specification. The database contains these two words.
 */
export type Spelling = 'documents' | 'ecosystem';

/** Returns a path and query with the prefix of a spelling. */
export const spell = (path: string, spelling: Spelling) =>
  spelling === 'ecosystem' ? toMatrixSpelling(path) : toDeclaredSpelling(path);

/**
 * Returns the spellings to try, in order: `/_matrix` first when nothing is known. A server that used `/_proto` may have
 * been replaced by different software, so both are tried for it.
 */
export function spellingsToTry(known: Spelling | undefined): readonly Spelling[] {
  if (known === 'ecosystem') return ['ecosystem'];
  return known === 'documents' ? ['documents', 'ecosystem'] : ['ecosystem', 'documents'];
}
