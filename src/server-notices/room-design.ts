import { getRoomVersion, type JsonObject } from '../protocol/index.ts';
import type { NoticeOptions } from './config.ts';

/** A state event that describes a notice room. */
export interface RoomTrait {
  readonly type: 'm.room.name' | 'm.room.topic' | 'm.room.avatar';
  readonly content: JsonObject;
  /** Whether the event removes a value. Such an event is not needed in a room without that value. */
  readonly removes: boolean;
}

/**
 * Returns name, topic and avatar of notice rooms. A topic or avatar that the options leave out is not
 * changed.
 * Source: interface document, "server_notices"; client-server API, `m.room.topic`, `m.room.avatar`.
 */
export function roomTraits({ room_name: name, room_topic: topic, room_avatar_url: url }: NoticeOptions) {
  const traits: RoomTrait[] = [{ type: 'm.room.name', content: { name }, removes: name === '' }];
  if (topic !== null)
    traits.push({ type: 'm.room.topic', content: topicContent(topic), removes: topic === '' });
  if (url !== null) {
    traits.push({ type: 'm.room.avatar', content: url === '' ? {} : { url }, removes: url === '' });
  }
  return traits;
}

/** Returns the topic as plain text and, for clients that support it, as `m.topic`. */
function topicContent(topic: string): JsonObject {
  return { topic, 'm.topic': { 'm.text': topic === '' ? [] : [{ mimetype: 'text/plain', body: topic }] } };
}

/**
 * Returns power levels that allow the notices user everything and all other users only to read. All levels
 * are given, so that `default_power_level_content_override` cannot let users send.
 */
export function noticePowerLevels(noticesUserId: string, roomVersion: string): JsonObject {
  const isPrivilegedCreator = getRoomVersion(roomVersion)?.privilegedCreators === true;
  return {
    users: isPrivilegedCreator ? {} : { [noticesUserId]: 100 },
    users_default: -10,
    events: {},
    events_default: 0,
    state_default: 50,
    invite: 50,
    kick: 50,
    ban: 50,
    redact: 50,
  };
}
