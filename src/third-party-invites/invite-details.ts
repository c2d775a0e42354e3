import type { JsonObject } from '../protocol/index.ts';
import { type RoomHead, type RoomReader, visibleContent } from '../room-engine/index.ts';

/**
 * Fields of the request. Each is followed by its source: the type of a state event, and a field of the event's content.
 */
const sources = [
  ['room_alias', 'm.room.canonical_alias', 'alias'],
  ['room_avatar_url', 'm.room.avatar', 'url'],
  ['room_join_rules', 'm.room.join_rules', 'join_rule'],
  ['room_name', 'm.room.name', 'name'],
  ['room_type', 'm.room.create', 'type'],
] as const;

/**
 * Returns the details of the room and the inviter that an identity server writes into the mail to the invited address.
 * Source: identity service API, `POST /store-invite`.
 */
export async function inviteDetails(
  engine: RoomReader,
  head: RoomHead,
  { sender, profile, webClient }: { sender: string; profile: JsonObject; webClient: string | undefined },
): Promise<JsonObject> {
  const details: Record<string, string> = { room_id: head.roomId, sender };
  for (const [name, type, field] of sources) {
    const entry = head.entry(type, '');
    const stored = entry && (await engine.events.get(entry.nid));
    const value = stored && visibleContent(stored)[field];
    if (typeof value === 'string') details[name] = value;
  }
  const { displayname, avatar_url } = profile;
  return {
    ...details,
    ...(typeof displayname === 'string' && { sender_display_name: displayname }),
    ...(typeof avatar_url === 'string' && { sender_avatar_url: avatar_url }),
    ...(webClient !== undefined && {
      'org.proto.web_client_location': webClient,
      'org.matrix.web_client_location': webClient,
    }),
  };
}
