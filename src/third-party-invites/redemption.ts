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

/**
 * Sends the inviter's server a request to send `event`, which invites the user who has the address
 * (`exchange_third_party_invite`).
 */
export type Exchange = (server: string, roomId: string, event: JsonObject) => Promise<void>;

export interface RedemptionDeps {
  readonly engine: RoomWriter;
  readonly memberships: Memberships;
  readonly identityServers: Pick<IdentityServers, 'isKeyValid'>;
  readonly exchange: Exchange;
  readonly serverName: string;
}

/**
 * The object that an identity server signs to confirm that a user owns an address. The token stands for the address.
 */
interface Signed extends JsonObject {
  readonly mxid: string;
  readonly token: string;
}

/**
 * Turns invites of addresses into invites of users.
 * Source: client-server API, "Third-party invites"; server-server API, "Third-party invites".
 */
export class Redemption {
  readonly #deps: RedemptionDeps;

  constructor(deps: RedemptionDeps) {
    this.#deps = deps;
  }

  /** Invites a user who joins with `third_party_signed`. @throws MatrixError M_BAD_JSON, M_FORBIDDEN */
  async byJoining(userId: string, roomId: string, signedJson: JsonObject): Promise<void> {
    const { sender } = signedJson;
    const signed = readSigned(signedJson);
    if (!isUserId(sender)) throw badJson('third_party_signed must have a valid sender');
    if (signed.mxid !== userId) throw forbidden('The invite is signed for another user');
    const membership = (await this.#deps.engine.heads.get(roomId))?.membership(userId);
    if (membership === 'join' || membership === 'invite') return;
    await this.#invite(roomId, sender, signed, true);
  }

  /**
   * Invites the user whom `signed` names, on behalf of the inviter of the address.
   * @param signedJson `third_party_signed`, or `signed` of a third-party invite
   * @throws MatrixError M_BAD_JSON; M_FORBIDDEN when `signedJson` matches no third-party invite of the room
   */
  invite(roomId: string, sender: string, signedJson: JsonObject): Promise<void> {
    return this.#invite(roomId, sender, readSigned(signedJson), false);
  }

  /** @param isWanted whether the user requests the invite: then limits and rules for inviters do not apply */
  async #invite(roomId: string, sender: string, signed: Signed, isWanted: boolean): Promise<void> {
    const { engine, memberships, exchange, serverName } = this.#deps;
    const head = await engine.heads.get(roomId);
    const isSenderLocal = serverOfUser(sender) === serverName;
    if (isSenderLocal && isResident(head, serverName)) {
      const extraContent = { third_party_invite: await this.#check(head, sender, signed) };
      const { mxid } = signed;
      if (isWanted)
        await engine.timeline.append(roomId, await memberships.invitation(sender, mxid, extraContent));
      else await memberships.invite(sender, roomId, mxid, { extraContent });
      return;
    }
    const server = serverOfUser(sender);
    if (isSenderLocal || server === undefined) throw forbidden('There is no such third-party invite');
    await exchange(server, roomId, {
      type: 'm.room.member',
      room_id: roomId,
      sender,
      state_key: signed.mxid,
      content: { membership: 'invite', third_party_invite: { display_name: '', signed: { ...signed } } },
    });
  }

  /** @returns `third_party_invite` for the content of the membership event */
  async #check(head: RoomHead, sender: string, signed: Signed): Promise<JsonObject> {
    const entry = head.entry('m.room.third_party_invite', signed.token);
    const earlier = entry && (await this.#deps.engine.events.get(entry.nid));
    if (earlier?.event.sender !== sender) throw forbidden('There is no such third-party invite');
    const content = visibleContent(earlier);
    const key = readInviteKeys(content).find(({ publicKey }) => isSignedWithAnyKey(signed, [publicKey]));
    if (!key) throw forbidden('The signature does not match any key of the third-party invite');
    if (!(await this.#isStillValid(key))) throw forbidden('The key of the signature is not valid any more');
    const { display_name: displayName } = content;
    return { ...(typeof displayName === 'string' && { display_name: displayName }), signed: { ...signed } };
  }

  /** Keys without `key_validity_url` are valid as long as the invite is. */
  async #isStillValid({ publicKey, validityUrl }: InviteKey): Promise<boolean> {
    return validityUrl === undefined || this.#deps.identityServers.isKeyValid(validityUrl, publicKey);
  }
}

function readSigned(signedJson: JsonObject): Signed {
  const { mxid, token, signatures } = signedJson;
  if (!isUserId(mxid) || typeof token !== 'string' || !isJsonObject(signatures)) {
    throw badJson('mxid, token and signatures are required');
  }
  return { ...signedJson, mxid, token };
}
