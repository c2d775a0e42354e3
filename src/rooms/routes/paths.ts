/** A path of the client-server API, in the present version and in the one before it, which old clients use. */
export function clientPath<const P extends string>(
  path: P,
): readonly [`/_proto/client/v3${P}`, `/_proto/client/r0${P}`] {
  return [`/_proto/client/v3${path}`, `/_proto/client/r0${path}`];
}
