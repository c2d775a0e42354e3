import { toDeclaredSpelling, toMatrixSpelling } from '../../kernel/http/index.ts';

/**
 * The paths that a service serves. The database stores these words:
 * - `ecosystem`: paths below `/_matrix`;
 * - `documents`: paths below `/_proto`;
 * - `legacy`: the paths without a prefix (application service API, "Legacy routes").
 */
export type Spelling = 'ecosystem' | 'documents' | 'legacy';

const spellings: readonly Spelling[] = ['ecosystem', 'documents', 'legacy'];

/** Returns the spellings to try. The first is the spelling of the last request that reached the service. */
export function spellingsToTry(lastSpelling: Spelling = 'ecosystem'): readonly Spelling[] {
  return [lastSpelling, ...spellings.filter((spelling) => spelling !== lastSpelling)];
}

/** Whether a text of the database is a spelling that this version knows. */
export const isSpelling = (text: string | null): text is Spelling =>
  spellings.some((spelling) => spelling === text);

/**
 * Returns a path in a spelling.
 * @param path path and query below `/_proto`, for instance `/_proto/app/v1/users/@a:b`
 */
export function spell(path: string, spelling: Spelling): string {
  if (spelling === 'documents') return toDeclaredSpelling(path);
  if (spelling === 'ecosystem') return toMatrixSpelling(path);
  const unprefixed = path.replace('/_proto/app/v1', '');
  return unprefixed.startsWith('/thirdparty/') ? `/_matrix/app/unstable${unprefixed}` : unprefixed;
}
