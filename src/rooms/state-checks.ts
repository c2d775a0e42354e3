import {
  badJson,
  compileServerAcl,
  invalidParam,
  isServerWithPortAllowed,
  type JsonObject,
  MatrixError,
  ownerOfStateKey,
  parseRoomAlias,
  powerLevelsContentError,
  type RoomEvent,
} from '../protocol/index.ts';
import { isLifetime, type RoomHead, type RoomReader, retentionType } from '../room-engine/index.ts';
import { aliasesIn, checkedAliases } from './aliases/canonical-alias.ts';
import type { RoomAliases } from './aliases/room-aliases.ts';

export interface StateChecksDeps {
  readonly engine: RoomReader;
  readonly aliases: Pick<RoomAliases, 'find' | 'locate'>;
  readonly serverName: string;
}

/** Maximum number of new remote aliases in one event: each is resolved at its server. */
const maxRemoteAliases = 20;

/**
 * Checks state events of local users for errors that the authorization rules do not find, or for which they would only
 * answer M_FORBIDDEN.
 * Source: client-server API, `PUT /rooms/{roomId}/state/{eventType}/{stateKey}`.
 */
export class StateChecks {
  readonly #deps: StateChecksDeps;

  constructor(deps: StateChecksDeps) {
    this.#deps = deps;
  }

  /**
   * Checks a state event with an empty state key; most types have no checks.
   * @throws MatrixError M_BAD_JSON or M_INVALID_PARAM for malformed content, M_INVALID_PARAM for a tombstone that names
   *   its own room, an ACL that denies this server or too many new aliases, M_BAD_ALIAS for an alias of another room
   */
  async check(sender: string, roomId: string, type: string, content: JsonObject): Promise<void> {
    if (type === 'm.room.server_acl') checkAcl(content, this.#deps.serverName);
    if (type === 'm.room.tombstone' && content['replacement_room'] === roomId) {
      throw invalidParam('A room cannot replace itself');
    }
    if (type === retentionType) checkRetention(content);
    if (type !== 'm.room.canonical_alias' && type !== 'm.room.power_levels') return;
    const head = await this.#deps.engine.heads.get(roomId);
    // Users who are not joined must not learn state from these errors; the authorization rules refuse them.
    if (head?.membership(sender) !== 'join') return;
    if (type === 'm.room.power_levels') await this.#checkLevels(head, content);
    else await this.#checkAliases(head, content);
  }

  /**
   * Checks a state key that begins with `@`, if the room version allows suffixes after the user id. Source: MSC3757.
   * @throws MatrixError M_BAD_JSON when no user can own the state
   */
  async checkOwner(roomId: string, stateKey: string): Promise<void> {
    const head = await this.#deps.engine.heads.get(roomId);
    if (head?.version.ownedState && ownerOfStateKey(stateKey) === undefined) {
      throw badJson('The state key must be a user id, or begin with a user id and an underscore');
    }
  }

  async #checkLevels(head: RoomHead, content: JsonObject): Promise<void> {
    const create = await this.#currentEvent(head, 'm.room.create');
    const error = create && powerLevelsContentError(content, head.version, create);
    if (error !== undefined) throw badJson(error);
  }

  /** Checks that new aliases exist and point to this room. Source: `m.room.canonical_alias`, "alt_aliases". */
  async #checkAliases(head: RoomHead, content: JsonObject): Promise<void> {
    const currentAliases = await this.#currentEvent(head, 'm.room.canonical_alias');
    const aliasesBefore = new Set(currentAliases ? aliasesIn(currentAliases.content) : []);
    const newAliases = checkedAliases(content).filter((alias) => !aliasesBefore.has(alias));
    const isLocal = (alias: string) => parseRoomAlias(alias)?.serverName === this.#deps.serverName;
    const remoteAliases = newAliases.filter((alias) => !isLocal(alias));
    if (remoteAliases.length > maxRemoteAliases) {
      throw invalidParam(`At most ${maxRemoteAliases} aliases of other servers can be added at once`);
    }
    for (const alias of newAliases.filter(isLocal)) {
      if ((await this.#deps.aliases.find(alias)) !== head.roomId) throw badAlias(alias);
    }
    await Promise.all(remoteAliases.map((alias) => this.#checkRemoteAlias(head.roomId, alias)));
  }

  async #checkRemoteAlias(roomId: string, alias: string): Promise<void> {
    const resolved = await this.#deps.aliases.locate(alias).catch((error: unknown) => {
      if (error instanceof MatrixError) return undefined;
      throw error;
    });
    if (resolved?.roomId !== roomId) throw badAlias(alias);
  }

  async #currentEvent(head: RoomHead, type: string): Promise<RoomEvent | undefined> {
    const entry = head.entry(type, '');
    return entry && (await this.#deps.engine.events.get(entry.nid))?.event;
  }
}

/**
 * Refuses a server ACL that denies this server: local users could not revert it. Compares the name with its
 * port, so that other servers on the same host can be denied.
 * @throws MatrixError M_INVALID_PARAM
 */
export function checkAcl(content: JsonObject, serverName: string): void {
  if (!isServerWithPortAllowed(compileServerAcl(content), serverName)) {
    throw invalidParam('The server ACL would deny this server');
  }
}

/**
 * Checks the lifetimes of a retention policy. Source: MSC1763.
 * @throws MatrixError M_BAD_JSON unless they are whole milliseconds, and the minimum is not above the maximum
 */
function checkRetention(content: JsonObject): void {
  const { min_lifetime: min, max_lifetime: max } = content;
  for (const [name, value] of Object.entries({ min_lifetime: min, max_lifetime: max }))
    if (value !== undefined && !isLifetime(value))
      throw badJson(`'${name}' must be an integer of at least 0`);
  if (isLifetime(min) && isLifetime(max) && min > max)
    throw badJson("'min_lifetime' must not be above 'max_lifetime'");
}

/** The error of a request that sets an alias which does not point to the room. */
export const badAlias = (alias: string) =>
  new MatrixError(400, 'M_BAD_ALIAS', `${alias} does not point to this room`);
