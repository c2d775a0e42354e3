import { getRoomVersion, type JsonObject } from '../protocol/index.ts';
import type { NoticeOptions } from './config.ts';

/** What a room for notices shows of itself. */
export interface RoomTrait {
  readonly type: 'm.room.name' | 'm.room.topic' | 'm.room.avatar';
  readonly content: JsonObject;
  /** It takes away what is there: where nothing is, it is not needed. */
  readonly removes: boolean;
}

/**
 * Name, topic and avatar of the rooms. A topic and an avatar of which the options say nothing are left as they are.
 * Source: requirement document 2, "server_notices"; client-server API, `m.room.topic`, `m.room.avatar`.
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

/** The topic as text and, for clients that know it, as `m.topic`. */
function topicContent(topic: string): JsonObject {
  return { topic, 'm.topic': { 'm.text': topic === '' ? [] : [{ mimetype: 'text/plain', body: topic }] } };
}

/**
 * Who may do what: the notices user everything, everybody else nothing but read. All of it is said, so that no
 * `default_power_level_content_override` lets users speak.
 */
export function noticePowerLevels(noticesUserId: string, roomVersion: string): JsonObject {
  const isImplied = getRoomVersion(roomVersion)?.privilegedCreators === true;
  return {
    users: isImplied ? {} : { [noticesUserId]: 100 },
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
