import type { RoomEvent } from '../event.ts';

/**
 * Returns the user who created the room: `content.creator` up to v10, the sender of the create event since
 * v11. `undefined` if the content names no creator.
 * Source: https://spec.matrix.org/latest/rooms/v11/#remove-the-creator-property-of-mroomcreate-events
 */
export function creatorOf(create: RoomEvent): string | undefined {
  if (create.version.creator === 'sender') return create.sender;
  const creator = create.content['creator'];
  return typeof creator === 'string' ? creator : undefined;
}

const cache = new WeakMap<RoomEvent, ReadonlySet<string>>();

/**
 * Returns all creators of the room: `creatorOf`, and since v12 the `additional_creators` too.
 * Source: https://spec.matrix.org/latest/rooms/v12/#authorisation-rules
 */
export function creatorsOf(create: RoomEvent): ReadonlySet<string> {
  let creators = cache.get(create);
  if (creators === undefined) {
    creators = new Set(listCreators(create));
    cache.set(create, creators);
  }
  return creators;
}

function listCreators(create: RoomEvent): string[] {
  const creators: string[] = [];
  const creator = creatorOf(create);
  if (creator !== undefined) creators.push(creator);
  const additional = create.content['additional_creators'];
  if (create.version.privilegedCreators && Array.isArray(additional)) {
    for (const user of additional) if (typeof user === 'string') creators.push(user);
  }
  return creators;
}
