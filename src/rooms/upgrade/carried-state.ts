import {
  isJsonObject,
  type JsonObject,
  type PowerLevels,
  type RoomVersion,
  splitStateMapKey,
} from '../../protocol/index.ts';
import type { EventToSend, StateEntry } from '../../room-engine/index.ts';
import { type StoredEvent, visibleContent } from '../../room-engine/index.ts';

/** State events with an empty state key that are copied. Power levels and canonical aliases are handled separately. */
const carriedTypes = new Set([
  'm.room.server_acl',
  'm.room.encryption',
  'm.room.name',
  'm.room.avatar',
  'm.room.topic',
  'm.room.guest_access',
  'm.room.history_visibility',
  'm.room.join_rules',
  'm.room.retention',
]);

/** Keys of `m.room.create` that are not copied. */
const omittedKeys = new Set(['room_version', 'creator', 'predecessor', 'additional_creators']);

/**
 * Returns the content of the new room's create event.
 * @param tombstoneId id of the tombstone in the old room; absent where the create event does not refer to it
 */
export function carriedCreation(
  old: JsonObject,
  {
    version,
    creator,
    oldRoomId,
    tombstoneId,
    additionalCreators,
  }: {
    version: RoomVersion;
    creator: string;
    oldRoomId: string;
    tombstoneId: string | undefined;
    additionalCreators: readonly string[];
  },
): JsonObject {
  return {
    ...Object.fromEntries(Object.entries(old).filter(([key]) => !omittedKeys.has(key))),
    room_version: version.id,
    ...(version.creator === 'content' ? { creator } : undefined),
    ...(additionalCreators.length > 0 ? { additional_creators: [...additionalCreators] } : undefined),
    predecessor: {
      room_id: oldRoomId,
      ...(tombstoneId === undefined ? undefined : { event_id: tombstoneId }),
    },
  };
}

/** Types that are copied only in part: the part that concerns the new room. */
const partlyCarriedTypes = new Set(['m.room.create', 'm.room.power_levels', 'm.room.canonical_alias']);

/**
 * Whether an upgrade needs an entry of the old room's state. Of the memberships, it needs only bans.
 * @param key as `stateMapKey`
 */
export function mayBeCarried(key: string, { membership }: Pick<StateEntry, 'membership'>): boolean {
  const [type, stateKey] = splitStateMapKey(key);
  if (membership !== undefined) return membership === 'ban';
  if (type === 'm.space.child') return true;
  return stateKey === '' && (carriedTypes.has(type) || partlyCarriedTypes.has(type));
}

/**
 * Returns the state that is copied to the new room, without power levels and canonical alias: first the
 * `carriedTypes`, then space children and bans.
 * @param state the state of the old room, by `stateMapKey`
 * @param sender the user who upgrades the room
 * @param levels the power levels: bans of users with a lower level than `sender` are copied
 */
export function carriedState(
  state: ReadonlyMap<string, StoredEvent>,
  version: RoomVersion,
  sender: string,
  levels: PowerLevels,
): EventToSend[] {
  const carried: EventToSend[] = [];
  const others: EventToSend[] = [];
  for (const [key, stored] of state) {
    const [type, stateKey] = splitStateMapKey(key);
    const content = visibleContent(stored);
    const draft = { type, stateKey, sender };
    if (stateKey === '' && carriedTypes.has(type)) {
      carried.push({
        ...draft,
        content: type === 'm.room.join_rules' ? joinRules(content, version) : content,
      });
    } else if (type === 'm.space.child' && Array.isArray(content['via'])) {
      others.push({ ...draft, content });
    } else if (isBan(type, content) && levels.ofUser(sender) > levels.ofUser(stateKey)) {
      others.push({ ...draft, content: banContent(content) });
    }
  }
  return [...carried, ...others];
}

const isBan = (type: string, content: JsonObject) =>
  type === 'm.room.member' && content['membership'] === 'ban';

const banContent = ({ reason }: JsonObject): JsonObject => ({
  membership: 'ban',
  ...(typeof reason === 'string' ? { reason } : undefined),
});

/**
 * Returns the join rules. A rule that the new version does not support becomes `invite`, so that invited users can
 * join.
 */
function joinRules(content: JsonObject, version: RoomVersion): JsonObject {
  const rule = content['join_rule'];
  const isRuleOfVersion =
    (rule !== 'knock' || version.knock) &&
    (rule !== 'restricted' || version.restricted) &&
    (rule !== 'knock_restricted' || version.knockRestricted);
  return isRuleOfVersion ? content : { join_rule: 'invite' };
}

/**
 * Splits the content of a canonical alias event into the aliases that move to the new room, and the aliases that stay.
 */
export function splitCanonicalAlias(
  content: JsonObject,
  isMoved: (alias: string) => boolean,
): { moved: JsonObject | undefined; remaining: JsonObject } {
  const pick = (isWanted: (alias: string) => boolean): JsonObject => {
    const { alias, alt_aliases: altAliases } = content;
    const pickedAltAliases = Array.isArray(altAliases)
      ? altAliases.filter((candidate) => typeof candidate === 'string' && isWanted(candidate))
      : [];
    return {
      ...(typeof alias === 'string' && isWanted(alias) ? { alias } : undefined),
      ...(pickedAltAliases.length > 0 ? { alt_aliases: pickedAltAliases } : undefined),
    };
  };
  const moved = pick(isMoved);
  const hasMoved = isJsonObject(moved) && Object.keys(moved).length > 0;
  return { moved: hasMoved ? moved : undefined, remaining: pick((alias) => !isMoved(alias)) };
}
