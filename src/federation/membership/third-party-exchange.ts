import {
  forbidden,
  invalidParam,
  isJsonObject,
  isUserId,
  type JsonObject,
  serverOfUser,
} from '../../protocol/index.ts';
import type { HandshakeDeps } from './handshake-deps.ts';

/**
 * Replaces a third-party invite that a local user has sent. The new invite names the remote user who owns the address.
 * Source: server-server API, `PUT /exchange_third_party_invite/{roomId}`.
 * @throws MatrixError M_INVALID_PARAM, M_FORBIDDEN, M_NOT_FOUND
 */
export async function exchangeThirdPartyInvite(
  { access, serverName, redeemThirdPartyInvite }: HandshakeDeps,
  origin: string,
  roomId: string,
  partial: JsonObject,
): Promise<void> {
  await access.check(origin, roomId);
  const { type, room_id: statedRoom, sender, state_key: userId, content } = partial;
  if (type !== 'm.room.member' || !isJsonObject(content) || content['membership'] !== 'invite') {
    throw invalidParam('The event is not an invite');
  }
  if (statedRoom !== roomId) throw invalidParam('The invite belongs to another room');
  if (!isUserId(userId) || serverOfUser(userId) !== origin) {
    throw forbidden('The invited user is not a user of your server');
  }
  if (!isUserId(sender) || serverOfUser(sender) !== serverName) {
    throw invalidParam('The sender is not a user of this server');
  }
  const invite = content['third_party_invite'];
  const signed = isJsonObject(invite) ? invite['signed'] : undefined;
  if (!isJsonObject(signed)) throw invalidParam('third_party_invite is missing');
  if (signed['mxid'] !== userId) throw forbidden('The signed object is for another user');
  await redeemThirdPartyInvite(roomId, sender, signed);
}
