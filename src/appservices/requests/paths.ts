import { toDocumentsSpelling, toEcosystemSpelling } from '../../kernel/http/index.ts';

/**
 * The paths that a service serves: those of one of the two spellings (`/_matrix` or `/_proto`), or the legacy paths without
 * a prefix (application service API, "Legacy routes").
 */
export type Spelling = 'ecosystem' | 'documents' | 'legacy';

const spellings: readonly Spelling[] = ['ecosystem', 'documents', 'legacy'];

/** Returns the spellings to try: first the one by which the service was last reached. */
export function spellingsToTry(known: Spelling = 'ecosystem'): readonly Spelling[] {
  return [known, ...spellings.filter((spelling) => spelling !== known)];
}

export const isSpelling = (text: string | null): text is Spelling =>
  spellings.some((known) => known === text);

/**
 * Returns a path in a spelling.
 * @param path path and query below `/_proto`, for instance `/_proto/app/v1/users/@a:b`
 */
export function spell(path: string, spelling: Spelling): string {
  if (spelling === 'documents') return toDocumentsSpelling(path);
  if (spelling === 'ecosystem') return toEcosystemSpelling(path);
  const unprefixed = path.replace('/_proto/app/v1', '');
  return unprefixed.startsWith('/thirdparty/') ? `/_matrix/app/unstable${unprefixed}` : unprefixed;
}
