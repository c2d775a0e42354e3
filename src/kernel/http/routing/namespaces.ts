/**
 * The server answers each path in two spellings. Routes are declared in the spelling of the interface document
 * (`/_proto`, `/_server`). The Matrix specification and existing admin tools use the other spelling (`/_matrix`,
 * `/_synapse`). No other module for incoming requests knows both spellings.
 */
const spellings = [
  { declared: '/_proto/', matrix: '/_matrix/' },
  { declared: '/_server/', matrix: '/_synapse/' },
  { declared: '/.well-known/proto/', matrix: '/.well-known/matrix/' },
] as const;

/** Returns the URL (path and query) in the spelling of route declarations: `/_proto/…` for `/_matrix/…`. */
export function toDeclaredSpelling(url: string): string {
  for (const { declared, matrix } of spellings) {
    if (url.startsWith(matrix)) return declared + url.slice(matrix.length);
  }
  return url;
}

/** Returns the URL (path and query) in the spelling of the Matrix specification: `/_matrix/…` for `/_proto/…`. */
export function toMatrixSpelling(url: string): string {
  for (const { declared, matrix } of spellings) {
    if (url.startsWith(declared)) return matrix + url.slice(declared.length);
  }
  return url;
}

/**
 * Returns the spellings of the declared path of a route: two for a path below `/_proto`, `/_server` or
 * `/.well-known/proto`, otherwise the path alone.
 */
export function bothSpellings(path: string): readonly string[] {
  const matrix = toMatrixSpelling(path);
  return matrix === path ? [path] : [path, matrix];
}
