/** Measures JSON, hashes and signatures of a typical event, compared with `JSON.stringify` of it. */
import {
  buildEvent,
  canonicalJson,
  checkIntegrity,
  clientEvent,
  getRoomVersion,
  type JsonObject,
  parseJson,
  receivePdu,
} from '../../src/protocol/index.ts';
import { newSigningKey } from '../../test/support/inputs/signing-key.ts';
import { microseconds, report } from './measure.ts';

const version = getRoomVersion('12')!;
const signer = { serverName: 'example.org', key: newSigningKey('a_bench') };
const draft = {
  type: 'm.room.message',
  sender: '@alice:example.org',
  roomId: '!Nhcu5BS-UMnFX7hBVfVSoXiD7OgH6iRT-xyIuqDnpYQ',
  content: {
    msgtype: 'm.text',
    body: 'A message of ordinary length, as people write them every day — with a dash.',
    'm.mentions': { user_ids: ['@bob:example.org'] },
  },
  depth: 1234,
  originServerTs: 1_760_000_000_000,
  authEventIds: [
    '$Rqnc-F-dvnEYJTyHq_iKxU2bZ1CI92-kuZq3a5lr5Zg',
    '$acR1l0raoZnm60CBwAVgqbZqoO_mYU81xysh1u7XcJk',
  ],
  prevEventIds: ['$CD66HAED5npg6074c6pDtLKalHjVfYb2q4Q3LZgrW6o'],
};

const { event, json } = buildEvent(draft, version, signer);
const parsed = parseJson(json) as JsonObject;
const shuffled: JsonObject = Object.fromEntries(Object.entries(event.pdu).reverse());
const received = receivePdu(parsed, version);
const serverKey = { key: signer.key.publicKey, validUntilTs: Number.MAX_SAFE_INTEGER };

const stringify = microseconds(() => JSON.stringify(parsed));
const sign = microseconds(() => signer.key.sign(received.signingInput));
const build = microseconds(() => buildEvent(draft, version, signer));

console.log(`One event of ${json.length} bytes; ratios to JSON.stringify`);
report('JSON.stringify', stringify, stringify);
report(
  'canonicalJson, keys in order',
  microseconds(() => canonicalJson(parsed)),
  stringify,
);
report(
  'canonicalJson, keys out of order',
  microseconds(() => canonicalJson(shuffled)),
  stringify,
);
report(
  'JSON.parse',
  microseconds(() => JSON.parse(json)),
  stringify,
);
report(
  'parseJson, numbers as written',
  microseconds(() => parseJson(json, { numbers: 'as written' })),
  stringify,
);
report('Ed25519 signature', sign, stringify);
report('buildEvent', build, stringify);
report('buildEvent without its signature', build - sign, stringify);
report(
  'receivePdu',
  microseconds(() => receivePdu(parsed, version)),
  stringify,
);
report(
  'checkIntegrity',
  microseconds(() => checkIntegrity(received, () => serverKey, Date.now())),
  stringify,
);
report(
  'clientEvent',
  microseconds(() => clientEvent(event)),
  stringify,
);
