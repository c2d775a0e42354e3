const withoutNulls = (body: object) =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));

/**
 * Functions that change the body of a response so that it fits the specification's schema, by `operationId`. Covers the
 * responses that deliberately differ from the schema (docs/interoperability.md).
 */
const asSpecified: Readonly<Record<string, (body: Record<string, unknown>) => unknown>> = {
  // Unset profile fields are null.
  getJoinedMembersByRoom: ({ joined, ...rest }) => ({
    ...rest,
    joined: Object.fromEntries(
      Object.entries((joined ?? {}) as object).map(([userId, member]) => [userId, withoutNulls(member)]),
    ),
  }),
  // Unknown fields of devices are null.
  getDevices: ({ devices, ...rest }) => ({ ...rest, devices: (devices as object[]).map(withoutNulls) }),
  getDevice: withoutNulls,
  // Receipts, typing, presence and account data have no event id.
  getEvents: onlyTimelineEvents,
  peekEvents: onlyTimelineEvents,
  // Avatars may be any URL.
  getUserProfile: withoutForeignAvatar,
  getProfileField: withoutForeignAvatar,
};

function onlyTimelineEvents({ chunk, ...rest }: Record<string, unknown>) {
  return { ...rest, chunk: (chunk as object[]).filter((event) => 'event_id' in event) };
}

function withoutForeignAvatar({ avatar_url: avatar, ...rest }: Record<string, unknown>) {
  const isForeign = typeof avatar === 'string' && !avatar.startsWith('mxc://');
  return isForeign || avatar === undefined ? rest : { ...rest, avatar_url: avatar };
}

/** The body of a successful response without the differences that docs/interoperability.md lists. */
export function withoutKnownDifferences(operationId: string, body: unknown): unknown {
  const change = asSpecified[operationId];
  return change && typeof body === 'object' && body !== null && !Array.isArray(body)
    ? change(body as Record<string, unknown>)
    : body;
}
