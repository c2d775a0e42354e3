import { type JsonObject, stateMapKey } from '../../../protocol/index.ts';
import { type RoomHead, type RoomReader, visibleContent } from '../../../room-engine/index.ts';
import { nidAt, type StateNids } from '../../classic/rooms/room-state.ts';
import { memberSummaryAt } from '../../classic/rooms/room-summary.ts';

const nameKey = stateMapKey('m.room.name', '');
const avatarKey = stateMapKey('m.room.avatar', '');
const memberPrefix = stateMapKey('m.room.member', '');

/** The inputs for the fields of a room. */
export interface FieldsRequest {
  /** Whether the room is new to the client. */
  readonly isInitial: boolean;
  /** The changed entries of the state; all entries for a new room. */
  readonly changes: StateNids;
  /** The stream position of the answer. */
  readonly upTo: number;
}

/** Returns name, avatar, heroes and member counts of a joined room, as far as they have changed. */
export async function summaryFields(
  engine: RoomReader,
  head: RoomHead,
  userId: string,
  { isInitial, changes, upTo }: FieldsRequest,
): Promise<JsonObject> {
  const membersChanged = isInitial || hasMembers(changes);
  const nameChanged = isInitial || changes.has(nameKey);
  if (!membersChanged && !nameChanged && !changes.has(avatarKey)) return {};
  const name = await textOf(engine, await nidAt(engine, head, nameKey, upTo), 'name');
  const avatar =
    isInitial || changes.has(avatarKey)
      ? await textOf(engine, await nidAt(engine, head, avatarKey, upTo), 'url')
      : undefined;
  const { heroes, joinedCount, invitedCount } = await memberSummaryAt(engine, head, userId, upTo);
  return {
    ...changedText('name', name, isInitial, changes.has(nameKey)),
    ...changedText('avatar', avatar, isInitial, changes.has(avatarKey)),
    ...(name === undefined && (membersChanged || nameChanged)
      ? { heroes: await heroProfiles(engine, head, heroes, upTo) }
      : undefined),
    ...(membersChanged ? { joined_count: joinedCount, invited_count: invitedCount } : undefined),
  };
}

/** Returns the name and the avatar of a room in an earlier state. @param state all entries of that state */
export async function pastFields(engine: RoomReader, state: StateNids): Promise<JsonObject> {
  const [name, avatar] = await Promise.all([
    textOf(engine, state.get(nameKey), 'name'),
    textOf(engine, state.get(avatarKey), 'url'),
  ]);
  return {
    ...(name === undefined ? undefined : { name }),
    ...(avatar === undefined ? undefined : { avatar }),
  };
}

/**
 * Returns the field with its text if the text is new to the client or has changed, or with `null` if the text was
 * removed. Returns no field if nothing has changed.
 */
function changedText(
  field: string,
  text: string | undefined,
  isInitial: boolean,
  hasChanged: boolean,
): JsonObject {
  if (text !== undefined && (isInitial || hasChanged)) return { [field]: text };
  return hasChanged && !isInitial ? { [field]: null } : {};
}

async function heroProfiles(
  engine: RoomReader,
  head: RoomHead,
  heroes: readonly string[],
  upTo: number,
): Promise<JsonObject[]> {
  return Promise.all(
    heroes.map(async (hero) => {
      const nid = await nidAt(engine, head, stateMapKey('m.room.member', hero), upTo);
      const stored = nid === undefined ? undefined : await engine.events.get(nid);
      const { displayname, avatar_url } = stored ? visibleContent(stored) : {};
      return {
        user_id: hero,
        ...(typeof displayname === 'string' ? { displayname } : undefined),
        ...(typeof avatar_url === 'string' ? { avatar_url } : undefined),
      };
    }),
  );
}

async function textOf(engine: RoomReader, nid: number | undefined, key: string): Promise<string | undefined> {
  const stored = nid === undefined ? undefined : await engine.events.get(nid);
  const value = stored && visibleContent(stored)[key];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function hasMembers(changes: StateNids): boolean {
  for (const key of changes.keys()) if (key.startsWith(memberPrefix)) return true;
  return false;
}
