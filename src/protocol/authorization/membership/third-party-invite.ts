import { isSignedWithAnyKey } from '../../crypto/any-key.ts';
import type { RoomEvent } from '../../event.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../json.ts';
import { membershipOf } from '../room-state.ts';
import { ownProperty } from '../select-auth-events.ts';
import { allowIf, reject, type Verdict } from '../verdict.ts';
import type { MembershipChange } from './membership-change.ts';

/**
 * Rule 5.4.1, an invite that redeems an earlier `m.room.third_party_invite`:
 * - 5.4.1.1: rejects a banned target.
 * - 5.4.1.2: rejects an invite without `signed`.
 * - 5.4.1.3: rejects `signed` without `mxid` or `token`.
 * - 5.4.1.4: rejects an `mxid` that is not the target.
 * - 5.4.1.5: rejects if the room has no `m.room.third_party_invite` with that token as state key.
 * - 5.4.1.6: rejects a sender who did not send that event.
 * - 5.4.1.7: allows if a public key of that event has signed `signed`.
 * - 5.4.1.8: rejects any other third-party invite.
 */
export function authorizeThirdPartyInvite(change: MembershipChange, invite: JsonValue): Verdict {
  const { event, target, room } = change;
  // 5.4.1.1
  if (membershipOf(room, target) === 'ban') return reject('The user is banned');
  // 5.4.1.2
  const signed = ownProperty(invite, 'signed');
  if (signed === undefined) return reject('The third-party invite has no signed object');
  // 5.4.1.3
  const mxid = ownProperty(signed, 'mxid');
  const token = ownProperty(signed, 'token');
  if (mxid === undefined || token === undefined)
    return reject('The signed object of the third-party invite has no mxid or no token');
  // 5.4.1.4
  if (mxid !== target) return reject('The third-party invite is for another user');
  // 5.4.1.5
  const earlier = typeof token === 'string' ? room.lookup('m.room.third_party_invite', token) : undefined;
  if (earlier === undefined) return reject('The room has no third-party invite with that token');
  // 5.4.1.6
  if (event.sender !== earlier.sender) return reject('Another user sent the third-party invite');
  // 5.4.1.7, 5.4.1.8
  const isSigned = isJsonObject(signed) && isSignedByKeyOf(earlier, event, signed);
  return allowIf(isSigned, 'The signed object is not signed by a key of the third-party invite');
}

/** Results of `isSignedByKeyOf`, by the `m.room.third_party_invite` event and the invite that redeems it. */
const verified = new WeakMap<RoomEvent, WeakMap<RoomEvent, boolean>>();

/**
 * Caches the result for each pair of events, because signatures are slow to verify and state resolution applies the
 * rule several times.
 */
function isSignedByKeyOf(earlier: RoomEvent, event: RoomEvent, signed: JsonObject): boolean {
  let invites = verified.get(earlier);
  if (invites === undefined) {
    invites = new WeakMap();
    verified.set(earlier, invites);
  }
  let isSigned = invites.get(event);
  if (isSigned === undefined) {
    isSigned = isSignedWithAnyKey(signed, publicKeysOf(earlier.content));
    invites.set(event, isSigned);
  }
  return isSigned;
}

/** Returns the public keys of rules 5.4.1.7.1 and 5.4.1.7.2. */
function publicKeysOf(content: JsonObject): string[] {
  const { public_key: single, public_keys: list } = content;
  const keys: string[] = [];
  if (typeof single === 'string') keys.push(single);
  if (!Array.isArray(list)) return keys;
  for (const entry of list) {
    const key = ownProperty(entry, 'public_key');
    if (typeof key === 'string') keys.push(key);
  }
  return keys;
}
