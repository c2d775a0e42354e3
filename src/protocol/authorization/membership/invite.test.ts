import { describe } from 'node:test';
import { newSigningKey } from '../../../../test/support/inputs/signing-key.ts';
import { signJson } from '../../crypto/signed-json.ts';
import type { JsonObject, JsonValue } from '../../json.ts';
import {
  create,
  creator,
  levels,
  member,
  membership,
  moderator,
  stranger,
  testRules,
  versions,
} from '../test/rule-cases.ts';

const allVersions = versions(1);
const invite = membership(stranger, 'invite', member);

describe('authorize, rule 5.4: invites', () => {
  testRules([
    {
      rule: '5.4.4',
      description: 'an invite at the invite level',
      versions: allVersions,
      allowed: true,
      event: invite,
    },
    {
      rule: '5.4.4',
      description: 'a repeated invite',
      versions: allVersions,
      allowed: true,
      event: invite,
      state: [membership(stranger, 'invite')],
    },
    {
      rule: '5.4.4',
      description: 'an invite, whatever the level in events is',
      versions: allVersions,
      allowed: true,
      event: invite,
      state: [levels({ events: { 'm.room.member': 100 } })],
    },
    {
      rule: '5.4.2',
      description: 'an invite by a user outside of the room',
      versions: allVersions,
      allowed: false,
      event: membership(stranger, 'invite', '@other:b.example'),
    },
    ...['join', 'ban'].map((before) => ({
      rule: '5.4.3',
      description: `an invite for a user with the membership ${before}`,
      versions: allVersions,
      allowed: false,
      event: membership(stranger, 'invite', creator),
      state: [membership(stranger, before)],
    })),
    ...['leave', 'knock'].map((before) => ({
      rule: '5.4.4',
      description: `an invite for a user with the membership ${before}`,
      versions: allVersions,
      allowed: true,
      event: invite,
      state: [membership(stranger, before)],
    })),
    {
      rule: '5.4.5',
      description: 'an invite below the invite level',
      versions: allVersions,
      allowed: false,
      event: invite,
      state: [levels({ invite: 1 })],
    },
    {
      rule: '5.4.4',
      description: 'an invite by the creator, whatever the invite level is, since v12',
      versions: versions(12),
      allowed: true,
      event: membership(stranger, 'invite', creator),
      state: [create({}), levels({ invite: 1000 })],
    },
  ]);
});

const key = newSigningKey('0');
const otherKey = newSigningKey('1');

/** Signs the data of an invited user as an identity server does. */
function signed(content: JsonObject = {}, by = key): JsonObject {
  return signJson({ mxid: stranger, token: 'token', ...content }, 'identity.example', by);
}

/** An invite by a user outside of the room, which only the rules of third-party invites can allow. */
const redeem = (third_party_invite: JsonValue, sender = '@left:a.example') =>
  membership(stranger, 'invite', sender, { third_party_invite });

const thirdPartyInviteEvent = (content: JsonObject, sender = '@left:a.example') => ({
  type: 'm.room.third_party_invite',
  sender,
  stateKey: 'token',
  content,
});

const publicKey = { public_key: key.publicKey.base64 };

describe('authorize, rule 5.4.1: third-party invites', () => {
  testRules([
    {
      rule: '5.4.1.7.1',
      description: 'a third-party invite signed with public_key',
      versions: allVersions,
      allowed: true,
      event: redeem({ signed: signed() }),
      state: [thirdPartyInviteEvent(publicKey)],
    },
    {
      rule: '5.4.1.7.2',
      description: 'a third-party invite signed with one of public_keys',
      versions: allVersions,
      allowed: true,
      event: redeem({ signed: signed() }),
      state: [
        thirdPartyInviteEvent({
          public_key: 'bad',
          public_keys: [null, {}, { public_key: otherKey.publicKey.base64 }, publicKey],
        }),
      ],
    },
    {
      rule: '5.4.1.1',
      description: 'a third-party invite for a banned user',
      versions: allVersions,
      allowed: false,
      event: redeem({ signed: signed() }),
      state: [thirdPartyInviteEvent(publicKey), membership(stranger, 'ban')],
    },
    ...[null, 'signed', [], {}, { signed: null }, { signed: [] }].map((value) => ({
      rule: '5.4.1.2',
      description: `an invite with the third_party_invite ${JSON.stringify(value)}`,
      versions: allVersions,
      allowed: false,
      event: redeem(value, moderator),
      state: [thirdPartyInviteEvent(publicKey, moderator)],
    })),
    ...['mxid', 'token'].map((missing) => ({
      rule: '5.4.1.3',
      description: `a third-party invite without ${missing}`,
      versions: allVersions,
      allowed: false,
      event: redeem({ signed: { ...signed(), [missing]: undefined } }, moderator),
      state: [thirdPartyInviteEvent(publicKey, moderator)],
    })),
    {
      rule: '5.4.1.4',
      description: 'a third-party invite whose signed data is for another user',
      versions: allVersions,
      allowed: false,
      event: redeem({ signed: signed({ mxid: '@other:b.example' }) }, moderator),
      state: [thirdPartyInviteEvent(publicKey, moderator)],
    },
    ...['other', 1, null].map((token) => ({
      rule: '5.4.1.5',
      description: `a third-party invite with the token ${JSON.stringify(token)}`,
      versions: allVersions,
      allowed: false,
      event: redeem({ signed: signed({ token }) }, moderator),
      state: [thirdPartyInviteEvent(publicKey, moderator)],
    })),
    {
      rule: '5.4.1.6',
      description: 'a third-party invite whose sender did not send the m.room.third_party_invite event',
      versions: allVersions,
      allowed: false,
      event: redeem({ signed: signed() }, moderator),
      state: [thirdPartyInviteEvent(publicKey)],
    },
    {
      rule: '5.4.1.8',
      description: 'a third-party invite signed with another key',
      versions: allVersions,
      allowed: false,
      event: redeem({ signed: signed({}, otherKey) }),
      state: [thirdPartyInviteEvent(publicKey)],
    },
    {
      rule: '5.4.1.8',
      description: 'a third-party invite changed after signing',
      versions: allVersions,
      allowed: false,
      event: redeem({ signed: { ...signed(), more: 1 } }),
      state: [thirdPartyInviteEvent(publicKey)],
    },
    {
      rule: '5.4.1.8',
      description: 'a third-party invite with malformed public keys',
      versions: allVersions,
      allowed: false,
      event: redeem({ signed: signed() }),
      state: [thirdPartyInviteEvent({ public_key: 1, public_keys: 'x' })],
    },
  ]);
});
