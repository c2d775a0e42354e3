import { toDeclaredSpelling, toMatrixSpelling } from '../../kernel/http/index.ts';

/**
 * The paths that a service serves. The database contains these words: paths below `/_matrix` (`ecosystem`) or below
 * `/_proto` (`documents`), or the legacy paths without a prefix (application service API, "Legacy routes").
 */
export type Spelling = 'ecosystem' | 'documents' | 'legacy';

const spellings: readonly Spelling[] = ['ecosystem', 'documents', 'legacy'];

/** Returns the spellings to try: first the spelling by which the service was last reached. */
export function spellingsToTry(lastSpelling: Spelling = 'ecosystem'): readonly Spelling[] {
  return [lastSpelling, ...spellings.filter((spelling) => spelling !== lastSpelling)];
}

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
