import { type IdentityServers, type InviteKey, readInviteKeys } from '../identity-servers/index.ts';
import {
  badJson,
  forbidden,
  isJsonObject,
  isSignedWithAnyKey,
  isUserId,
  type JsonObject,
  serverOfUser,
} from '../protocol/index.ts';
import { isResident, type RoomHead, type RoomWriter, visibleContent } from '../room-engine/index.ts';
import type { Memberships } from '../rooms/index.ts';

/** Asks the server of somebody who has invited an address to invite the user who has it. */
export type Exchange = (server: string, roomId: string, event: JsonObject) => Promise<void>;

export interface RedemptionDeps {
  readonly engine: RoomWriter;
  readonly memberships: Memberships;
  readonly identityServers: Pick<IdentityServers, 'isKeyValid'>;
  readonly exchange: Exchange;
  readonly serverName: string;
}

/** What an identity server has signed: that a user has the address that a token stands for. */
interface Signed extends JsonObject {
  readonly mxid: string;
  readonly token: string;
}

/**
 * Makes invites of users of what were invites of their addresses.
 * Source: client-server API, "Third-party invites"; server-server API, "Third-party invites".
 */
export class Redemption {
  readonly #deps: RedemptionDeps;

  constructor(deps: RedemptionDeps) {
    this.#deps = deps;
  }

  /** A user joins with what an identity server has signed for them. @throws MatrixError M_BAD_JSON, M_FORBIDDEN */
  async byJoining(userId: string, roomId: string, given: JsonObject): Promise<void> {
    const { sender } = given;
    const signed = readSigned(given);
    if (!isUserId(sender)) throw badJson('third_party_signed must name its sender');
    if (signed.mxid !== userId) throw forbidden('This is signed for another user');
    const membership = (await this.#deps.engine.heads.get(roomId))?.membership(userId);
    if (membership === 'join' || membership === 'invite') return;
    await this.#invite(roomId, sender, signed, true);
  }

  /**
   * Invites the user whom `signed` names, in the name of the user who has invited the address.
   * @param given `third_party_signed`, or `signed` of a third-party invite
   * @throws MatrixError M_BAD_JSON, M_FORBIDDEN when it does not fit an invite of the room
   */
  invite(roomId: string, sender: string, given: JsonObject): Promise<void> {
    return this.#invite(roomId, sender, readSigned(given), false);
  }

  /** @param isWanted the user asks for it, whoever else may not invite them */
  async #invite(roomId: string, sender: string, signed: Signed, isWanted: boolean): Promise<void> {
    const { engine, memberships, exchange, serverName } = this.#deps;
    const head = await engine.heads.get(roomId);
    const isOurs = serverOfUser(sender) === serverName;
    if (isOurs && isResident(head, serverName)) {
      const given = { third_party_invite: await this.#check(head, sender, signed) };
      const { mxid } = signed;
      if (isWanted) await engine.timeline.append(roomId, await memberships.invitation(sender, mxid, given));
      else await memberships.invite(sender, roomId, mxid, { given });
      return;
    }
    const server = serverOfUser(sender);
    if (isOurs || server === undefined) throw forbidden('There is no such invite');
    await exchange(server, roomId, {
      type: 'm.room.member',
      room_id: roomId,
      sender,
      state_key: signed.mxid,
      content: { membership: 'invite', third_party_invite: { display_name: '', signed: { ...signed } } },
    });
  }

  /** @returns the member `third_party_invite` of the invite */
  async #check(head: RoomHead, sender: string, signed: Signed): Promise<JsonObject> {
    const entry = head.entry('m.room.third_party_invite', signed.token);
    const earlier = entry && (await this.#deps.engine.events.get(entry.nid));
    if (earlier?.event.sender !== sender) throw forbidden('There is no such invite');
    const content = visibleContent(earlier);
    const key = readInviteKeys(content).find(({ publicKey }) => isSignedWithAnyKey(signed, [publicKey]));
    if (!key) throw forbidden('No key of the invite has signed this');
    if (!(await this.#isStillValid(key)))
      throw forbidden('The key that has signed this does not count any more');
    const { display_name: displayName } = content;
    return { ...(typeof displayName === 'string' && { display_name: displayName }), signed: { ...signed } };
  }

  /** A key without an address for that question counts as long as the invite does. */
  async #isStillValid({ publicKey, validityUrl }: InviteKey): Promise<boolean> {
    return validityUrl === undefined || this.#deps.identityServers.isKeyValid(validityUrl, publicKey);
  }
}

function readSigned(given: JsonObject): Signed {
  const { mxid, token, signatures } = given;
  if (!isUserId(mxid) || typeof token !== 'string' || !isJsonObject(signatures)) {
    throw badJson('mxid, token and signatures are needed');
  }
  return { ...given, mxid, token };
}
