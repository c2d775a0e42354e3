import type { Database, Reader } from '../../kernel/database/index.ts';
import {
  fitsBytes,
  forbidden,
  invalidParam,
  isRoomAlias,
  MatrixError,
  notFound,
  PowerLevels,
  parseRoomAlias,
} from '../../protocol/index.ts';
import type { RoomTables, RoomWriter } from '../../room-engine/index.ts';
import { isStorableText, visibleContent } from '../../room-engine/index.ts';
import { RoomView } from '../history/room-view.ts';
import { withoutAlias } from './canonical-alias.ts';

const canonicalAlias = 'm.room.canonical_alias';

/** Most servers that the answer to a look-up names. */
const maxServers = 20;

/** What the operator allows of names and listings; declared here, supplied at composition. */
export interface DirectoryRules {
  /** @param roomId absent for a room that is about to be made */
  mayCreateAlias(userId: string, alias: string, roomId: string | undefined): boolean | Promise<boolean>;
  /** @param aliases those that the room has on this server */
  mayPublish(userId: string, roomId: string, aliases: readonly string[]): boolean | Promise<boolean>;
}

/** Everybody may do everything. */
export const noDirectoryRules: DirectoryRules = { mayCreateAlias: () => true, mayPublish: () => true };

export interface AliasOptions {
  readonly require_membership_for_aliases: boolean;
}

/** Asks other servers for the rooms behind their aliases; declared here, supplied at composition. */
export interface RemoteAliases {
  /** @throws MatrixError M_NOT_FOUND; 502 when the other server can not be asked */
  resolve(alias: string): Promise<ResolvedAlias>;
}

/** Where an alias leads. */
export interface ResolvedAlias {
  readonly roomId: string;
  /** Servers that are likely to know the room. */
  readonly servers: readonly string[];
}

export interface RoomAliasesDeps {
  readonly database: Database;
  readonly engine: RoomWriter;
  readonly serverName: string;
  readonly options: AliasOptions;
  readonly rules: DirectoryRules;
  /** By default there is no other server. */
  readonly remote?: RemoteAliases | undefined;
}

/** The names of rooms on this server. Source: client-server API, "Room aliases". */
export class RoomAliases {
  readonly #database: Database;
  readonly #reader: Reader<RoomTables>;
  readonly #engine: RoomWriter;
  readonly #serverName: string;
  readonly #options: AliasOptions;
  readonly #rules: DirectoryRules;
  readonly #remote: RemoteAliases | undefined;

  constructor({ database, engine, serverName, options, rules, remote }: RoomAliasesDeps) {
    this.#database = database;
    this.#reader = database.reader<RoomTables>();
    this.#engine = engine;
    this.#serverName = serverName;
    this.#options = options;
    this.#rules = rules;
    this.#remote = remote;
  }

  /** The room behind an alias of this server, `undefined` when there is none. */
  async find(alias: string): Promise<string | undefined> {
    if (!isRoomAlias(alias)) return undefined;
    const row = await this.#reader
      .selectFrom('room_aliases')
      .select('room_id')
      .where('alias', '=', alias)
      .executeTakeFirst();
    return row?.room_id;
  }

  /** The aliases that this server has for a room, in order. */
  async of(roomId: string): Promise<string[]> {
    const rows = await this.#reader
      .selectFrom('room_aliases')
      .select('alias')
      .where('room_id', '=', roomId)
      .orderBy('alias')
      .execute();
    return rows.map((row) => row.alias);
  }

  /** Like `of`, for a user. @throws MatrixError M_FORBIDDEN when they may not read the room */
  async listFor(userId: string, roomId: string): Promise<string[]> {
    const view = await RoomView.forReading(this.#engine, await this.#engine.heads.get(roomId), userId);
    // Those who have left hear of no aliases that the room was given since.
    if (!view.isJoined && !(await view.isWorldReadable())) throw forbidden('You are not in this room');
    return this.of(roomId);
  }

  /** Servers with users in the room, this one first if it is among them, then those with the most. */
  async serversOf(roomId: string): Promise<string[]> {
    const head = await this.#engine.heads.get(roomId);
    const others = [...(head?.servers ?? [])]
      .filter(([server]) => server !== this.#serverName)
      .sort(([, some], [, more]) => more - some)
      .map(([server]) => server);
    const own = head?.servers.has(this.#serverName) ? [this.#serverName] : [];
    return [...own, ...others].slice(0, maxServers);
  }

  /** The room behind an alias of this server. @throws MatrixError M_NOT_FOUND, M_INVALID_PARAM */
  async resolveLocal(alias: string): Promise<ResolvedAlias> {
    if (!isRoomAlias(alias)) throw invalidParam('This is not a room alias');
    const roomId = await this.find(alias);
    if (roomId === undefined) throw notFound(`Room alias ${alias} not found`);
    return { roomId, servers: await this.serversOf(roomId) };
  }

  /**
   * The room behind an alias of any server.
   * @throws MatrixError M_NOT_FOUND, M_INVALID_PARAM; 502 when the other server can not be asked
   */
  async locate(alias: string): Promise<ResolvedAlias> {
    const isOwn = !this.#remote || parseRoomAlias(alias)?.serverName === this.#serverName;
    return isOwn ? this.resolveLocal(alias) : this.#remote!.resolve(alias);
  }

  /** The id of the room behind an alias of any server, as `locate`. */
  async resolve(alias: string): Promise<string> {
    return (await this.locate(alias)).roomId;
  }

  /**
   * The full alias for a localpart that somebody wants to give a room.
   * @param roomId absent for a room that is about to be made
   * @throws MatrixError M_INVALID_PARAM, M_FORBIDDEN, M_ROOM_IN_USE
   */
  async checkNew(userId: string, localpart: string, roomId?: string): Promise<string> {
    const alias = `#${localpart}:${this.#serverName}`;
    if (localpart === '' || /[\s:\0]/.test(localpart) || !fitsBytes(alias) || !isRoomAlias(alias)) {
      throw invalidParam('This can not be the name of a room');
    }
    if (!(await this.#rules.mayCreateAlias(userId, alias, roomId))) {
      throw forbidden('You may not make this alias on this server');
    }
    if ((await this.find(alias)) !== undefined) throw inUse(alias);
    return alias;
  }

  /** @throws MatrixError M_ROOM_IN_USE when the alias exists, also for the same room */
  async put(userId: string, alias: string, roomId: string): Promise<void> {
    const created = await this.#database.transaction<RoomTables, boolean>(async (writer) => {
      const result = await writer
        .insertInto('room_aliases')
        .values({ alias, room_id: roomId, creator: userId })
        .onConflict((conflict) => conflict.column('alias').doNothing())
        .executeTakeFirst();
      return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
    });
    if (!created) throw inUse(alias);
  }

  /** For `PUT /directory/room/{roomAlias}`. */
  async create(userId: string, alias: string, roomId: string): Promise<void> {
    const parts = parseRoomAlias(alias);
    if (!parts) throw invalidParam('This is not a room alias');
    if (parts.serverName !== this.#serverName) throw invalidParam('The alias belongs to another server');
    const head = await this.#engine.heads.get(roomId);
    if (!head) throw notFound('Unknown room');
    if (this.#options.require_membership_for_aliases && head.membership(userId) !== 'join') {
      throw forbidden('You are not in this room');
    }
    const full = await this.checkNew(userId, parts.localpart, roomId).catch(asConflict);
    await this.put(userId, full, roomId).catch(asConflict);
  }

  /** Lets the aliases of a room point to another one. */
  async moveAll(roomId: string, toRoomId: string): Promise<void> {
    await this.#database.transaction<RoomTables, void>(async (writer) => {
      await writer
        .updateTable('room_aliases')
        .set({ room_id: toRoomId })
        .where('room_id', '=', roomId)
        .execute();
    });
  }

  /**
   * For `DELETE /directory/room/{roomAlias}`: who made the alias, may send canonical aliases, or is an admin. The
   * canonical alias of the room is that no more, where the user has the power to say so.
   */
  async remove(userId: string, alias: string, isAdmin: boolean): Promise<void> {
    const row = isStorableText(alias) ? await this.#row(alias) : undefined;
    if (!row) throw notFound(`Room alias ${alias} not found`);
    if (row.creator !== userId && !isAdmin && !(await this.#maySetCanonicalAlias(userId, row.room_id))) {
      throw forbidden('You may not remove this alias');
    }
    await this.#database.transaction<RoomTables, void>(async (writer) => {
      await writer.deleteFrom('room_aliases').where('alias', '=', alias).execute();
    });
    await this.#removeFromCanonicalAlias(userId, row.room_id, alias);
  }

  #row(alias: string) {
    return this.#reader.selectFrom('room_aliases').selectAll().where('alias', '=', alias).executeTakeFirst();
  }

  /** Takes an alias that is gone out of the state of the room, when the user has the power to. */
  async #removeFromCanonicalAlias(userId: string, roomId: string, alias: string): Promise<void> {
    if (!(await this.#maySetCanonicalAlias(userId, roomId))) return;
    const entry = (await this.#engine.heads.get(roomId))?.entry(canonicalAlias, '');
    const present = entry && (await this.#engine.events.get(entry.nid));
    const content = present && withoutAlias(visibleContent(present), alias);
    if (!content) return;
    const draft = { type: canonicalAlias, stateKey: '', sender: userId, content };
    await this.#engine.timeline.append(roomId, draft).catch((error: unknown) => {
      // The alias is gone all the same.
      if (!(error instanceof MatrixError)) throw error;
    });
  }

  /** Whether the user has the power to send `m.room.canonical_alias`. */
  async #maySetCanonicalAlias(userId: string, roomId: string): Promise<boolean> {
    const head = await this.#engine.heads.get(roomId);
    if (head?.membership(userId) !== 'join') return false;
    const [create, levels] = await Promise.all(
      ['m.room.create', 'm.room.power_levels'].map(async (type) => {
        const entry = head.entry(type, '');
        return entry && (await this.#engine.events.get(entry.nid))?.event;
      }),
    );
    return new PowerLevels(create, levels).canSend(userId, canonicalAlias, true);
  }
}

const inUse = (alias: string) => new MatrixError(400, 'M_ROOM_IN_USE', `Room alias ${alias} is taken`);

/** What `createRoom` calls M_ROOM_IN_USE is a 409 M_UNKNOWN for `PUT /directory/room`. */
function asConflict(error: unknown): never {
  if (error instanceof MatrixError && error.errcode === 'M_ROOM_IN_USE') {
    throw new MatrixError(409, 'M_UNKNOWN', error.message);
  }
  throw error;
}
