/** Returns the paths of a client-server API endpoint: under v3, and under r0 for old clients. */
export function clientPath<const P extends string>(
  path: P,
): readonly [`/_proto/client/v3${P}`, `/_proto/client/r0${P}`] {
  return [`/_proto/client/v3${path}`, `/_proto/client/r0${path}`];
}
