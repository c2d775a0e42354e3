import { TextBuilder } from '../../../kernel/http/index.ts';
import { allReady, whenReady } from '../../../kernel/when-ready.ts';
import type { RoomHead, RoomReader, UserRoom } from '../../../room-engine/index.ts';
import type { AccountDataItem } from '../../../sync-contract/index.ts';
import type { KicksAndBans } from '../../kicks-and-bans.ts';
import type { ShownInvites } from '../../shown-invites.ts';
import { type SourceList, timelineBit } from '../../sources/source-list.ts';
import { accountDataIn } from '../account-data.ts';
import type { AnswerRange, Recipient } from '../recipient.ts';
import type { JoinedRooms } from './joined-rooms.ts';
import { lacksMembersAt } from './partial-members.ts';
import type { EntryText } from './room-text.ts';
import type { UnjoinedRooms } from './unjoined-rooms.ts';

export interface RoomEntriesDeps {
  readonly engine: RoomReader;
  readonly sources: SourceList;
  readonly joinedRooms: JoinedRooms;
  readonly unjoinedRooms: UnjoinedRooms;
  readonly shownInvites: ShownInvites;
  readonly kicksAndBans: KicksAndBans;
  /** Rooms that are left out of every sync (`exclude_rooms_from_sync`). */
  readonly excludedRooms: ReadonlySet<string>;
}

/** The entries in each section of `rooms` as JSON text, each with its room id as the key. */
export interface RoomSections {
  readonly join: TextBuilder;
  readonly invite: TextBuilder;
  readonly knock: TextBuilder;
  readonly leave: TextBuilder;
}

/** Number of rooms that are rendered at the same time: bounds memory and lets other requests run in between. */
const roomsAtOnce = 16;

/** Number of rooms whose heads and ephemeral events are loaded together: bounds memory and saves database queries. */
const roomsLoadedTogether = 4 * roomsAtOnce;

/** Bytes of an answer above which the timelines of further rooms have at most one event, because memory is limited. */
const maxBytesWithTimelines = 16_777_216;

/** Makes the entries of rooms in an answer. */
export class RoomEntries {
  readonly #deps: RoomEntriesDeps;

  constructor(deps: RoomEntriesDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the rooms that may have to be in an answer.
   * @param rooms all rooms of the user
   */
  candidates(
    rooms: ReadonlyMap<string, UserRoom>,
    { filter }: Pick<Recipient, 'filter'>,
    { since, changes, fullState }: AnswerRange,
  ): UserRoom[] {
    const { excludedRooms } = this.#deps;
    const candidates: UserRoom[] = [];
    const add = (room: UserRoom | undefined) => {
      if (!room || excludedRooms.has(room.roomId) || !filter.room.passesRoom(room.roomId)) return;
      // A room that was left and then forgotten is sent once more: another device of the user may have forgotten it.
      if (!room.forgotten || (since !== undefined && room.stream > since)) candidates.push(room);
    };
    if (changes && !fullState) for (const roomId of changes.rooms.keys()) add(rooms.get(roomId));
    else for (const room of rooms.values()) add(room);
    return candidates;
  }

  /**
   * Returns the entries of rooms; without a promise when everything is in memory.
   * @param accountData changed account data of the user, of all rooms
   */
  render(
    recipient: Recipient,
    rooms: readonly UserRoom[],
    range: AnswerRange,
    accountData: readonly AccountDataItem[],
  ): RoomSections | Promise<RoomSections> {
    const { since, changes } = range;
    const sections: RoomSections = {
      join: new TextBuilder(),
      invite: new TextBuilder(),
      knock: new TextBuilder(),
      leave: new TextBuilder(),
    };
    const changedBitsByRoom =
      changes?.rooms ?? (since === undefined ? noChangedBits : this.#changedBitsSince(rooms, since));
    return whenReady(changedBitsByRoom, (changedBits) => {
      const context = { recipient, range, changedBits, accountData };
      const adding =
        rooms.length <= roomsAtOnce
          ? this.#add(sections, rooms, context)
          : this.#addInBatches(sections, rooms, context);
      return whenReady(adding, () => sections);
    });
  }

  async #addInBatches(
    sections: RoomSections,
    rooms: readonly UserRoom[],
    context: AnswerContext,
  ): Promise<void> {
    for (let start = 0; start < rooms.length; start += roomsLoadedTogether) {
      const loaded = rooms.slice(start, start + roomsLoadedTogether);
      const inputs = await this.#load(loaded, context);
      for (let offset = 0; offset < loaded.length; offset += roomsAtOnce) {
        if (start + offset > 0) await new Promise(setImmediate);
        const isLong = sections.join.bytes + sections.leave.bytes > maxBytesWithTimelines;
        const entryContext = isLong ? withShortTimelines(inputs) : inputs;
        await this.#addLoaded(sections, loaded.slice(offset, offset + roomsAtOnce), entryContext);
      }
    }
  }

  #add(sections: RoomSections, rooms: readonly UserRoom[], context: AnswerContext): void | Promise<void> {
    return whenReady(this.#load(rooms, context), (loaded) => this.#addLoaded(sections, rooms, loaded));
  }

  /**
   * Loads heads and ephemeral events of rooms with queries for several rooms at a time. Returns no promise when
   * there is nothing to load.
   */
  #load(rooms: readonly UserRoom[], context: AnswerContext): EntryContext | Promise<EntryContext> {
    const { recipient, range } = context;
    const unknown = rooms.filter((room) => room.membership === 'join' && isNewTo(room, range.since));
    const inputs = allReady<[EphemeralOfRooms, readonly unknown[]]>([
      unknown.length > 0 ? this.#ephemeralOf(recipient, unknown) : noEphemeralOfRooms,
      this.#loadHeads(rooms, range),
    ]);
    return whenReady(inputs, ([ephemeral]) => ({ ...context, ephemeral }));
  }

  #addLoaded(
    sections: RoomSections,
    rooms: readonly UserRoom[],
    context: EntryContext,
  ): void | Promise<void> {
    const entries = rooms.map((room) => this.#entry(room, context));
    return whenReady(allReady<readonly (EntryText | undefined)[]>(entries), (texts) => {
      for (let index = 0; index < rooms.length; index++) addText(sections, rooms[index]!, texts[index]);
    });
  }

  /**
   * Loads together the heads of rooms that may have an entry, so that the heads share queries. Returns no promise when
   * all of them are in memory.
   */
  #loadHeads(
    rooms: readonly UserRoom[],
    range: AnswerRange,
  ): readonly unknown[] | Promise<readonly unknown[]> {
    const { heads } = this.#deps.engine;
    const missing = rooms.filter((room) => mayHaveEntry(room, range) && !heads.peek(room.roomId));
    return missing.length === 0 ? missing : Promise.all(missing.map(({ roomId }) => heads.get(roomId)));
  }

  /**
   * Returns the entry of a room as JSON text, `undefined` when there is no new data; without a promise when it takes no
   * database query.
   */
  #entry(room: UserRoom, context: EntryContext): EntryText | undefined | Promise<EntryText | undefined> {
    const { heads } = this.#deps.engine;
    if (!mayHaveEntry(room, context.range)) return undefined;
    return whenReady(heads.peek(room.roomId) ?? heads.get(room.roomId), (head) => {
      if (!head) return undefined;
      return room.membership === 'join'
        ? this.#joined(head, room, context)
        : this.#unjoined(head, room, context);
    });
  }

  #joined(
    head: RoomHead,
    room: UserRoom,
    context: EntryContext,
  ): EntryText | undefined | Promise<EntryText | undefined> {
    const { recipient, range, changedBits, ephemeral, accountData } = context;
    const { since, upTo, fullState } = range;
    const { roomId } = room;
    const isLazy = recipient.filter.room.state.lazyLoadMembers;
    // A client that does not load members lazily would take the known members for all members.
    if (!isLazy && lacksMembersAt(head, upTo)) return undefined;
    const hasBecomeComplete =
      !isLazy && since !== undefined && !isNewTo(room, since) && lacksMembersAt(head, since);
    const isNew = hasBecomeComplete || isNewTo(room, since);
    const rejoinedAfter = isNew ? since : undefined;
    const render = (data: readonly AccountDataItem[], initial = ephemeral) =>
      this.#deps.joinedRooms.render(head, recipient, {
        after: isNew ? undefined : since,
        upTo,
        rejoinedAfter,
        changedBits: changedBits.get(roomId) ?? 0,
        accountData: data,
        initialEphemeral: initial.get(roomId) ?? noEphemeral,
        fullState,
      });
    if (hasBecomeComplete) {
      const all = [this.#accountDataOfRooms(recipient.userId), this.#ephemeralOf(recipient, [room])] as const;
      return Promise.all(all).then(([data, initial]) => render(data, initial));
    }
    // A client whose user has joined the room again receives all account data of the room.
    return rejoinedAfter === undefined
      ? render(accountData)
      : this.#accountDataOfRooms(recipient.userId).then(render);
  }

  async #unjoined(
    head: RoomHead,
    room: UserRoom,
    { recipient, range, accountData }: EntryContext,
  ): Promise<string | undefined> {
    const { unjoinedRooms, shownInvites } = this.#deps;
    const { since, fullState } = range;
    if (room.membership === 'invite' || room.membership === 'knock') {
      const isShown = room.membership === 'knock' || (await shownInvites.isShown(recipient.userId, room));
      return isShown ? unjoinedRooms.prejoin(head, room) : undefined;
    }
    if (!(await this.#isLeftRoomShown(recipient, room, since))) return undefined;
    const leftRange = {
      after: since,
      fullState,
      accountData: accountDataIn(recipient, room.roomId, accountData),
    };
    return unjoinedRooms.left(head, room, recipient, leftRange);
  }

  /** Returns all ephemeral events of rooms that the client does not know. */
  async #ephemeralOf({ userId, filter }: Recipient, rooms: readonly UserRoom[]): Promise<EphemeralOfRooms> {
    const roomIds = rooms.map(({ roomId }) => roomId);
    const ephemeralByRoom = new Map(roomIds.map((roomId) => [roomId, new Map<string, readonly string[]>()]));
    for (const { section } of this.#deps.sources.ephemeral) {
      if (!filter.room.ephemeral.passesType(section.type)) continue;
      const events = await section.initial(userId, roomIds);
      for (const [roomId, texts] of events) ephemeralByRoom.get(roomId)?.set(section.type, texts);
    }
    return ephemeralByRoom;
  }

  /**
   * Whether a client receives a room that the user has left: if its filter includes left rooms, or if the leave is new
   * to it. In a first sync, only the removal of a user by another user counts as new.
   */
  async #isLeftRoomShown(
    { userId, filter }: Recipient,
    room: UserRoom,
    since: number | undefined,
  ): Promise<boolean> {
    if (filter.room.includeLeave) return true;
    return since === undefined ? this.#deps.kicksAndBans.wasRemoved(userId, room) : room.stream > since;
  }

  async #accountDataOfRooms(userId: string): Promise<AccountDataItem[]> {
    const withRooms = this.#deps.sources.accountData.filter(({ section }) => section.hasRooms);
    return (await Promise.all(withRooms.map(({ section }) => section.all(userId)))).flat();
  }

  /** Reads from the database what may have changed in each room, for a client that was away for long. */
  async #changedBitsSince(rooms: readonly UserRoom[], since: number): Promise<ReadonlyMap<string, number>> {
    const { engine, sources } = this.#deps;
    const changed = await engine.events.changedRooms(
      rooms.map(({ roomNid }) => roomNid),
      since,
    );
    const changedBitsOf = ({ roomId, roomNid }: UserRoom) => {
      let changedBits = changed.has(roomNid) ? timelineBit : 0;
      for (const { bit, section } of sources.ephemeral) {
        if (section.mayHaveChanged(roomId, since)) changedBits |= bit;
      }
      return changedBits;
    };
    return new Map(rooms.map((room) => [room.roomId, changedBitsOf(room)]));
  }
}

interface AnswerContext {
  readonly recipient: Recipient;
  readonly range: AnswerRange;
  /**
   * Combined bits of the timeline and of the sources that may have changed, by room id. Contains only rooms that the
   * client knows.
   */
  readonly changedBits: ReadonlyMap<string, number>;
  readonly accountData: readonly AccountDataItem[];
}

interface EntryContext extends AnswerContext {
  readonly ephemeral: EphemeralOfRooms;
}

/** Returns the context for rooms whose timelines have at most one event. */
function withShortTimelines(context: EntryContext): EntryContext {
  const { recipient } = context;
  return { ...context, recipient: { ...recipient, timelineLimit: Math.min(recipient.timelineLimit, 1) } };
}

const noChangedBits: ReadonlyMap<string, number> = new Map();

/** JSON texts of events by room id and event type. */
type EphemeralOfRooms = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;

const noEphemeral: ReadonlyMap<string, readonly string[]> = new Map();
const noEphemeralOfRooms: EphemeralOfRooms = new Map();

function addText(
  sections: RoomSections,
  { roomId, membership }: UserRoom,
  text: EntryText | undefined,
): void {
  if (text === undefined) return;
  const section = sections[sectionOf(membership)];
  const start = `${section.isEmpty ? '' : ','}${JSON.stringify(roomId)}:`;
  if (typeof text === 'string') {
    section.add(start + text);
    return;
  }
  section.add(start);
  section.append(text);
}

const sectionOf = (membership: UserRoom['membership']): keyof RoomSections =>
  membership === 'ban' ? 'leave' : membership;

/**
 * Whether an answer may contain the room: the user is joined to it, the client requests the full state, or the client
 * may not know the user's membership yet.
 */
const mayHaveEntry = (room: UserRoom, { since, fullState }: AnswerRange) =>
  room.membership === 'join' || fullState || isNewTo(room, since);

/** Whether the user's membership has changed since the client's token. */
const isNewTo = ({ stream }: UserRoom, since: number | undefined) => since === undefined || stream > since;
