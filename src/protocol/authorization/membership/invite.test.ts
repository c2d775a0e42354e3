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

const all = versions(1);
const invite = membership(stranger, 'invite', member);

describe('rule 5.4, invitations', () => {
  testRules([
    { rule: '5.4.4', description: 'at the invite level', versions: all, allowed: true, event: invite },
    {
      rule: '5.4.4',
      description: 'again',
      versions: all,
      allowed: true,
      event: invite,
      state: [membership(stranger, 'invite')],
    },
    {
      rule: '5.4.4',
      description: 'whatever `events` says',
      versions: all,
      allowed: true,
      event: invite,
      state: [levels({ events: { 'm.room.member': 100 } })],
    },
    {
      rule: '5.4.2',
      description: 'from outside',
      versions: all,
      allowed: false,
      event: membership(stranger, 'invite', '@other:b.example'),
    },
    ...['join', 'ban'].map((before) => ({
      rule: '5.4.3',
      description: `of somebody with the membership ${before}`,
      versions: all,
      allowed: false,
      event: membership(stranger, 'invite', creator),
      state: [membership(stranger, before)],
    })),
    ...['leave', 'knock'].map((before) => ({
      rule: '5.4.4',
      description: `of somebody with the membership ${before}`,
      versions: all,
      allowed: true,
      event: invite,
      state: [membership(stranger, before)],
    })),
    {
      rule: '5.4.5',
      description: 'below the invite level',
      versions: all,
      allowed: false,
      event: invite,
      state: [levels({ invite: 1 })],
    },
    {
      rule: '5.4.4',
      description: 'of the creator, who is above every level',
      versions: versions(12),
      allowed: true,
      event: membership(stranger, 'invite', creator),
      state: [create({}), levels({ invite: 1000 })],
    },
  ]);
});

const key = newSigningKey('0');
const otherKey = newSigningKey('1');

/** What an identity server says about the invited user. */
function signed(content: JsonObject = {}, by = key): JsonObject {
  return signJson({ mxid: stranger, token: 'token', ...content }, 'identity.example', by);
}

/** The invitation of a moderator who has left, which only the third-party rules can let through. */
const redeem = (third_party_invite: JsonValue, sender = '@left:a.example') =>
  membership(stranger, 'invite', sender, { third_party_invite });

const earlier = (content: JsonObject, sender = '@left:a.example') => ({
  type: 'm.room.third_party_invite',
  sender,
  stateKey: 'token',
  content,
});

const publicKey = { public_key: key.publicKey.base64 };

describe('rule 5.4.1, third-party invitations', () => {
  testRules([
    {
      rule: '5.4.1.7.1',
      description: 'signed with the public key',
      versions: all,
      allowed: true,
      event: redeem({ signed: signed() }),
      state: [earlier(publicKey)],
    },
    {
      rule: '5.4.1.7.2',
      description: 'signed with one of the public keys',
      versions: all,
      allowed: true,
      event: redeem({ signed: signed() }),
      state: [
        earlier({
          public_key: 'bad',
          public_keys: [null, {}, { public_key: otherKey.publicKey.base64 }, publicKey],
        }),
      ],
    },
    {
      rule: '5.4.1.1',
      description: 'of somebody banned',
      versions: all,
      allowed: false,
      event: redeem({ signed: signed() }),
      state: [earlier(publicKey), membership(stranger, 'ban')],
    },
    ...[null, 'signed', [], {}, { signed: null }, { signed: [] }].map((value) => ({
      rule: '5.4.1.2',
      description: `the third-party invite ${JSON.stringify(value)}`,
      versions: all,
      allowed: false,
      event: redeem(value, moderator),
      state: [earlier(publicKey, moderator)],
    })),
    ...['mxid', 'token'].map((missing) => ({
      rule: '5.4.1.3',
      description: `without ${missing}`,
      versions: all,
      allowed: false,
      event: redeem({ signed: { ...signed(), [missing]: undefined } }, moderator),
      state: [earlier(publicKey, moderator)],
    })),
    {
      rule: '5.4.1.4',
      description: 'for another user',
      versions: all,
      allowed: false,
      event: redeem({ signed: signed({ mxid: '@other:b.example' }) }, moderator),
      state: [earlier(publicKey, moderator)],
    },
    ...['other', 1, null].map((token) => ({
      rule: '5.4.1.5',
      description: `with the token ${JSON.stringify(token)}`,
      versions: all,
      allowed: false,
      event: redeem({ signed: signed({ token }) }, moderator),
      state: [earlier(publicKey, moderator)],
    })),
    {
      rule: '5.4.1.6',
      description: 'from another sender',
      versions: all,
      allowed: false,
      event: redeem({ signed: signed() }, moderator),
      state: [earlier(publicKey)],
    },
    {
      rule: '5.4.1.8',
      description: 'signed with another key',
      versions: all,
      allowed: false,
      event: redeem({ signed: signed({}, otherKey) }),
      state: [earlier(publicKey)],
    },
    {
      rule: '5.4.1.8',
      description: 'changed after signing',
      versions: all,
      allowed: false,
      event: redeem({ signed: { ...signed(), more: 1 } }),
      state: [earlier(publicKey)],
    },
    {
      rule: '5.4.1.8',
      description: 'without keys',
      versions: all,
      allowed: false,
      event: redeem({ signed: signed() }),
      state: [earlier({ public_key: 1, public_keys: 'x' })],
    },
  ]);
});
