import type { Database, Reader } from '../../kernel/database/index.ts';
import { useAdministratorRight } from '../../kernel/http/index.ts';
import {
  fitsBytes,
  forbidden,
  invalidParam,
  isRoomAlias,
  MatrixError,
  notFound,
  PowerLevels,
  parseRoomAlias,
  tooLarge,
} from '../../protocol/index.ts';
import type { RoomTables, RoomWriter } from '../../room-engine/index.ts';
import { isStorableText, visibleContent } from '../../room-engine/index.ts';
import { RoomView } from '../history/room-view.ts';
import { withoutAlias } from './canonical-alias.ts';

const canonicalAlias = 'm.room.canonical_alias';

/** Maximum number of servers in the response to an alias look-up. */
const maxServers = 20;

/** Maximum number of local aliases of a room: the response to `GET /rooms/{roomId}/aliases` lists all of them. */
const maxAliases = 1_000;

/** Rules of the operator for aliases and the room directory; supplied at composition. */
export interface DirectoryRules {
  /** Whether the user may create the alias. @param roomId absent for a room that is being created */
  mayCreateAlias(userId: string, alias: string, roomId: string | undefined): boolean | Promise<boolean>;
  /** Whether the user may publish the room in the room directory. @param aliases local aliases of the room */
  mayPublish(userId: string, roomId: string, aliases: readonly string[]): boolean | Promise<boolean>;
  /**
   * Checks by the rules of modules whether a room may be published in the directory, or removed from it. Absent: there
   * are no such rules.
   * @throws MatrixError
   */
  checkVisibility?(roomId: string, isPublic: boolean): Promise<void>;
}

/** Aliases of application services; supplied at composition. */
export interface AliasReservations {
  /** Whether the alias is reserved for an application service other than the service that makes the request. */
  isReservedFrom(alias: string, requester: AliasRequester): boolean;
  /** Whether the application service that makes the request may delete the alias, whichever user created it. */
  mayDelete(alias: string, requester: AliasRequester): boolean;
  /**
   * Queries the application services for an alias that does not exist, so that they may create its room.
   * @returns whether a service has created the room
   */
  provide(alias: string): Promise<boolean>;
  /** Called after the aliases of a room have changed. */
  onChange(roomId: string): void;
}

/** The user who creates or deletes an alias. */
export interface AliasRequester {
  readonly userId: string;
  /** Id of the application service that makes the request. */
  readonly appservice?: string | undefined;
}

/** Reserves no alias. */
const noReservations: AliasReservations = {
  isReservedFrom: () => false,
  mayDelete: () => false,
  provide: async () => false,
  onChange: () => undefined,
};

/** Allows every alias and every publication. */
export const noDirectoryRules: DirectoryRules = { mayCreateAlias: () => true, mayPublish: () => true };

export interface AliasOptions {
  readonly require_membership_for_aliases: boolean;
}

/** Resolves aliases of other servers; supplied at composition. */
export interface RemoteAliases {
  /** @throws MatrixError M_NOT_FOUND; 502 when the other server does not respond */
  resolve(alias: string): Promise<ResolvedAlias>;
}

/** The room that an alias points to. */
export interface ResolvedAlias {
  readonly roomId: string;
  /** Servers that are likely to be in the room. */
  readonly servers: readonly string[];
}

export interface RoomAliasesDeps {
  readonly database: Database;
  readonly engine: RoomWriter;
  readonly serverName: string;
  readonly options: AliasOptions;
  readonly rules: DirectoryRules;
  /** Absent: only local aliases are resolved. */
  readonly remote?: RemoteAliases | undefined;
  /** Absent: no alias is reserved. */
  readonly reservations?: AliasReservations | undefined;
}

/** Local room aliases. Source: client-server API, "Room aliases". */
export class RoomAliases {
  readonly #database: Database;
  readonly #reader: Reader<RoomTables>;
  readonly #engine: RoomWriter;
  readonly #serverName: string;
  readonly #options: AliasOptions;
  readonly #rules: DirectoryRules;
  readonly #remote: RemoteAliases | undefined;
  readonly #reservations: AliasReservations;

  constructor({ database, engine, serverName, options, rules, remote, reservations }: RoomAliasesDeps) {
    this.#database = database;
    this.#reader = database.reader<RoomTables>();
    this.#engine = engine;
    this.#serverName = serverName;
    this.#options = options;
    this.#rules = rules;
    this.#remote = remote;
    this.#reservations = reservations ?? noReservations;
  }

  /** Returns the room id of a local alias; `undefined` when the alias does not exist. */
  async find(alias: string): Promise<string | undefined> {
    if (!isRoomAlias(alias)) return undefined;
    const row = await this.#reader
      .selectFrom('room_aliases')
      .select('room_id')
      .where('alias', '=', alias)
      .executeTakeFirst();
    return row?.room_id;
  }

  /** Returns the local aliases of a room, sorted. */
  async of(roomId: string): Promise<string[]> {
    const rows = await this.#reader
      .selectFrom('room_aliases')
      .select('alias')
      .where('room_id', '=', roomId)
      .orderBy('alias')
      .execute();
    return rows.map((row) => row.alias);
  }

  /**
   * Returns the local aliases of a room to a user.
   * @throws MatrixError M_FORBIDDEN when the user may not read the room
   */
  async listFor(userId: string, roomId: string): Promise<string[]> {
    const view = await RoomView.forReading(this.#engine, await this.#engine.heads.get(roomId), userId);
    // Users who have left must not learn aliases that were added later.
    if (!view.isJoined && !(await view.isWorldReadable())) throw forbidden('You are not in this room');
    return this.of(roomId);
  }

  /** Returns the local aliases of any room to an administrator of the server. */
  async listForAdministrator(userId: string, roomId: string): Promise<string[]> {
    try {
      return await this.listFor(userId, roomId);
    } catch (error) {
      if (!(error instanceof MatrixError) || !isStorableText(roomId)) throw error;
      useAdministratorRight();
      return this.of(roomId);
    }
  }

  /**
   * Returns at most `maxServers` servers in the room: this server first if it is in the room, then the other servers,
   * beginning with the server that has the most joined users.
   */
  async serversOf(roomId: string): Promise<string[]> {
    const head = await this.#engine.heads.get(roomId);
    const otherServers = [...(head?.servers ?? [])]
      .filter(([server]) => server !== this.#serverName)
      .sort(([, countA], [, countB]) => countB - countA)
      .map(([server]) => server);
    const localServer = head?.servers.has(this.#serverName) ? [this.#serverName] : [];
    return [...localServer, ...otherServers].slice(0, maxServers);
  }

  /**
   * Resolves a local alias; if it does not exist, queries the application services, which may create it.
   * @throws MatrixError M_NOT_FOUND, M_INVALID_PARAM
   */
  async resolveLocal(alias: string): Promise<ResolvedAlias> {
    if (!isRoomAlias(alias)) throw invalidParam('Invalid room alias');
    const roomId = (await this.find(alias)) ?? (await this.#queryServices(alias));
    if (roomId === undefined) throw notFound(`Room alias ${alias} not found`);
    return { roomId, servers: await this.serversOf(roomId) };
  }

  /**
   * Resolves a local or remote alias.
   * @throws MatrixError M_NOT_FOUND, M_INVALID_PARAM; 502 when the other server does not respond
   */
  async locate(alias: string): Promise<ResolvedAlias> {
    const isLocal = !this.#remote || parseRoomAlias(alias)?.serverName === this.#serverName;
    return isLocal ? this.resolveLocal(alias) : this.#remote!.resolve(alias);
  }

  /** Resolves a local or remote alias to a room id. @throws MatrixError as `locate` */
  async resolve(alias: string): Promise<string> {
    return (await this.locate(alias)).roomId;
  }

  /**
   * Checks that a user may create the alias with a localpart.
   * @returns the full alias
   * @param roomId absent for a room that is being created
   * @throws MatrixError M_INVALID_PARAM, M_EXCLUSIVE, M_FORBIDDEN, M_ROOM_IN_USE
   */
  async checkNew(requester: AliasRequester, localpart: string, roomId?: string): Promise<string> {
    const { userId } = requester;
    const alias = `#${localpart}:${this.#serverName}`;
    if (localpart === '' || /[\s:\0]/.test(localpart) || !fitsBytes(alias) || !isRoomAlias(alias)) {
      throw invalidParam('Invalid room alias');
    }
    if (this.#reservations.isReservedFrom(alias, requester)) throw aliasReserved(alias, requester);
    if (!(await this.#rules.mayCreateAlias(userId, alias, roomId))) {
      throw forbidden('You may not create this alias on this server');
    }
    if ((await this.find(alias)) !== undefined) throw aliasInUse(alias);
    return alias;
  }

  /**
   * Stores an alias.
   * @throws MatrixError M_ROOM_IN_USE when the alias exists, even for the same room; M_TOO_LARGE when the room has
   * `maxAliases`
   */
  async put(userId: string, alias: string, roomId: string): Promise<void> {
    const created = await this.#database.transaction<RoomTables, boolean>(async (writer) => {
      const { count } = await writer
        .selectFrom('room_aliases')
        .select(({ fn }) => fn.countAll().as('count'))
        .where('room_id', '=', roomId)
        .executeTakeFirstOrThrow();
      if (Number(count) >= maxAliases)
        throw tooLarge(`A room has at most ${maxAliases} aliases of this server`);
      const result = await writer
        .insertInto('room_aliases')
        .values({ alias, room_id: roomId, creator: userId })
        .onConflict((conflict) => conflict.column('alias').doNothing())
        .executeTakeFirst();
      return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
    });
    if (!created) throw aliasInUse(alias);
    this.#reservations.onChange(roomId);
  }

  /**
   * Creates an alias for `PUT /directory/room/{roomAlias}`. Administrators need not be in the room.
   * @throws MatrixError M_INVALID_PARAM, M_NOT_FOUND, M_EXCLUSIVE, M_FORBIDDEN, 409 M_UNKNOWN when the alias exists,
   * M_TOO_LARGE
   */
  async create(
    requester: AliasRequester,
    alias: string,
    roomId: string,
    isAdministrator = false,
  ): Promise<void> {
    const { userId } = requester;
    const parts = parseRoomAlias(alias);
    if (!parts) throw invalidParam('Invalid room alias');
    if (parts.serverName !== this.#serverName) throw invalidParam('The alias belongs to another server');
    const head = await this.#engine.heads.get(roomId);
    if (!head) throw notFound('Unknown room');
    const needsMembership =
      this.#options.require_membership_for_aliases && requester.appservice === undefined;
    if (needsMembership && head.membership(userId) !== 'join') {
      if (!isAdministrator) throw forbidden('You are not in this room');
      useAdministratorRight();
    }
    const fullAlias = await this.checkNew(requester, parts.localpart, roomId).catch(asConflict);
    await this.put(userId, fullAlias, roomId).catch(asConflict);
  }

  /** Points all local aliases of a room to another room. */
  async moveAll(roomId: string, toRoomId: string): Promise<void> {
    await this.#database.transaction<RoomTables, void>(async (writer) => {
      await writer
        .updateTable('room_aliases')
        .set({ room_id: toRoomId })
        .where('room_id', '=', roomId)
        .execute();
    });
    for (const changed of [roomId, toRoomId]) this.#reservations.onChange(changed);
  }

  /**
   * Deletes an alias for `DELETE /directory/room/{roomAlias}`. The creator of the alias, joined users with the power to
   * send `m.room.canonical_alias`, the application service of the alias and administrators may do so; an alias that is
   * reserved for another application service, only administrators. If the user has that power, the alias is also
   * removed from the canonical alias event of the room.
   * @throws MatrixError M_NOT_FOUND, M_EXCLUSIVE, M_FORBIDDEN
   */
  async remove(requester: AliasRequester, alias: string, isAdmin: boolean): Promise<void> {
    const { userId } = requester;
    const row = isStorableText(alias) ? await this.#row(alias) : undefined;
    if (!row) throw notFound(`Room alias ${alias} not found`);
    const mayServiceDelete = this.#reservations.mayDelete(alias, requester);
    const isReserved = !mayServiceDelete && this.#reservations.isReservedFrom(alias, requester);
    const isAllowed =
      row.creator === userId || mayServiceDelete || (await this.#maySetCanonicalAlias(userId, row.room_id));
    if (isReserved || !isAllowed) {
      if (!isAdmin)
        throw isReserved ? aliasReserved(alias, requester) : forbidden('You may not delete this alias');
      useAdministratorRight();
    }
    await this.#database.transaction<RoomTables, void>(async (writer) => {
      await writer.deleteFrom('room_aliases').where('alias', '=', alias).execute();
    });
    this.#reservations.onChange(row.room_id);
    await this.#removeFromCanonicalAlias(userId, row.room_id, alias);
  }

  /** Queries the application services for an alias, so that they may create its room. @returns the id of the room */
  async #queryServices(alias: string): Promise<string | undefined> {
    return (await this.#reservations.provide(alias)) ? this.find(alias) : undefined;
  }

  #row(alias: string) {
    return this.#reader.selectFrom('room_aliases').selectAll().where('alias', '=', alias).executeTakeFirst();
  }

  /** Removes a deleted alias from `m.room.canonical_alias`, if the user has the power to send that event. */
  async #removeFromCanonicalAlias(userId: string, roomId: string, alias: string): Promise<void> {
    if (!(await this.#maySetCanonicalAlias(userId, roomId))) return;
    const entry = (await this.#engine.heads.get(roomId))?.entry(canonicalAlias, '');
    const stored = entry && (await this.#engine.events.get(entry.nid));
    const content = stored && withoutAlias(visibleContent(stored), alias);
    if (!content) return;
    const draft = { type: canonicalAlias, stateKey: '', sender: userId, content };
    await this.#engine.timeline.append(roomId, draft).catch((error: unknown) => {
      // The alias itself is deleted already: a refused state event does not fail the request.
      if (!(error instanceof MatrixError)) throw error;
    });
  }

  /** Whether the user is joined and has the power to send `m.room.canonical_alias`. */
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

const aliasReserved = (alias: string, { appservice }: AliasRequester) =>
  new MatrixError(
    400,
    'M_EXCLUSIVE',
    appservice === undefined
      ? `${alias} is reserved for an application service`
      : `The application service '${appservice}' may not use ${alias}`,
  );

const aliasInUse = (alias: string) => new MatrixError(400, 'M_ROOM_IN_USE', `Room alias ${alias} is taken`);

/** Translates M_ROOM_IN_USE, which is for `createRoom`, to the 409 M_UNKNOWN of `PUT /directory/room`. */
function asConflict(error: unknown): never {
  if (error instanceof MatrixError && error.errcode === 'M_ROOM_IN_USE') {
    throw new MatrixError(409, 'M_UNKNOWN', error.message);
  }
  throw error;
}
