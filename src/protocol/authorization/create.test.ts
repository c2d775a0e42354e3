import { describe } from 'node:test';
import type { JsonObject } from '../json.ts';
import { create, creator, testRules, versions } from './test/rule-cases.ts';

const allVersions = versions(1);
const withCreator = (content: JsonObject) => create({ creator, ...content });

describe('authorize, rule 1: m.room.create', () => {
  testRules([
    {
      rule: '1.5',
      description: 'a create event',
      versions: allVersions,
      allowed: true,
      event: withCreator({}),
    },
    {
      rule: '1.1',
      description: 'a create event with previous events',
      versions: allVersions,
      allowed: false,
      event: { ...withCreator({}), prevEventIds: ['$x:a.example'] },
    },
    {
      rule: '1.2',
      description: 'a create event with a room id of another server up to v11',
      versions: versions(1, 11),
      allowed: false,
      event: { ...withCreator({}), roomId: '!room:other.example' },
    },
    {
      rule: '1.2',
      description: 'a create event whose room id and sender have no server up to v11',
      versions: versions(1, 11),
      allowed: false,
      event: { ...withCreator({}), sender: 'creator', roomId: '!room' },
    },
    {
      rule: '1.2',
      description: "a create event whose room id has the sender's server with its port",
      versions: versions(1, 11),
      allowed: true,
      event: { ...withCreator({}), sender: '@c:a.example:8448', roomId: '!room:a.example:8448' },
    },
    {
      rule: '1.2',
      description: 'a create event with a room_id since v12',
      versions: versions(12),
      allowed: false,
      event: { ...withCreator({}), pduRoomId: '!create:a.example' },
    },
    {
      rule: '1.3',
      description: 'a create event with a supported room version',
      versions: allVersions,
      allowed: true,
      event: withCreator({ room_version: '10' }),
    },
    ...['99', '', 1, null, ['1']].map((room_version) => ({
      rule: '1.3',
      description: `a create event with the room version ${JSON.stringify(room_version)}`,
      versions: allVersions,
      allowed: false,
      event: withCreator({ room_version }),
    })),
    {
      rule: 'v1 1.4',
      description: 'a create event without creator up to v10',
      versions: versions(1, 10),
      allowed: false,
      event: create({}),
    },
    {
      rule: 'v1 1.4',
      description: 'a create event without creator since v11',
      versions: versions(11),
      allowed: true,
      event: create({}),
    },
    {
      rule: '1.4',
      description: 'a create event with a list of additional creators',
      versions: versions(12),
      allowed: true,
      event: create({ additional_creators: ['@a:a.example', '@UPPER:b.example:8448'] }),
    },
    {
      rule: '1.4',
      description: 'a create event with an empty list of additional creators',
      versions: versions(12),
      allowed: true,
      event: create({ additional_creators: [] }),
    },
    ...[null, '@a:a.example', {}, [1], ['@a:a.example', null], ['a:a.example'], ['@a'], ['@a:b c']].map(
      (additional_creators) => ({
        rule: '1.4',
        description: `a create event with the additional creators ${JSON.stringify(additional_creators)} since v12`,
        versions: versions(12),
        allowed: false,
        event: create({ additional_creators }),
      }),
    ),
    {
      rule: '1.4',
      description: 'a create event with malformed additional creators up to v11',
      versions: versions(1, 11),
      allowed: true,
      event: withCreator({ additional_creators: 1 }),
    },
  ]);
});
