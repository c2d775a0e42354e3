import { toDeclaredSpelling, toMatrixSpelling } from '../kernel/http/index.ts';

/**
 * The namespace of the paths that a server answers, by its name in the database: `documents` for `/_proto`, as in the
 * interface document and in the code, `ecosystem` for `/_matrix`, as in the specification.
 */
export type Spelling = 'documents' | 'ecosystem';

/** Returns a path and query in a namespace. */
export const spell = (path: string, spelling: Spelling) =>
  spelling === 'ecosystem' ? toMatrixSpelling(path) : toDeclaredSpelling(path);

/**
 * Returns the namespaces to try, in order: `/_matrix` first when nothing is known. A server that used
 * `/_proto` may have been replaced by different software, so both are tried for it.
 */
export function spellingsToTry(known: Spelling | undefined): readonly Spelling[] {
  if (known === 'ecosystem') return ['ecosystem'];
  return known === 'documents' ? ['documents', 'ecosystem'] : ['ecosystem', 'documents'];
}
