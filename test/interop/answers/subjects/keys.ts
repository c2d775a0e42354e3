import type { Subject } from '../compared-request.ts';

const algorithms = ['m.olm.v1.curve25519-aes-sha2', 'm.megolm.v1.aes-sha2'];
const key = 'wjLpTLRqbqBzLs63aYaEv2Boi6cFEbbM/sSRQ2oAKk4';
const deviceKeys = {
  user_id: '{anna}',
  device_id: '{anna-device}',
  algorithms,
  keys: { 'curve25519:{anna-device}': key, 'ed25519:{anna-device}': key },
  signatures: { '{anna}': { 'ed25519:{anna-device}': 'c2lnbmF0dXJl' } },
};
const signing = (usage: string) => ({ user_id: '{anna}', usage: [usage], keys: { [`ed25519:${key}`]: key } });
const otherPublicKey = 'Vq5M7a5ASTDS8DtsdaTrQ4NzO8z9tDF2QY4Dxz9Wl0w';
const otherCrossSigningKey = (usage: string) => ({
  user_id: '{anna}',
  usage: [usage],
  keys: { [`ed25519:${otherPublicKey}`]: otherPublicKey },
});
const backup = { algorithm: 'm.megolm_backup.v1.curve25519-aes-sha2', auth_data: { public_key: key } };
const session = { first_message_index: 1, forwarded_count: 0, is_verified: false, session_data: { a: 1 } };
const auth = {
  type: 'm.login.password',
  identifier: { type: 'm.id.user', user: '{anna}' },
  password: 'a password',
};

export const keys: Subject = {
  subject: 'keys',
  requests: [
    ['anna', 'POST /keys/upload', {}, { note: 'empty' }],
    ['anna', 'POST /keys/upload', { device_keys: deviceKeys }],
    [
      'anna',
      'POST /keys/upload',
      { device_keys: { ...deviceKeys, user_id: '{ben}' } },
      { note: 'of another user' },
    ],
    [
      'anna',
      'POST /keys/upload',
      { device_keys: { ...deviceKeys, device_id: 'OTHER' } },
      { note: 'of another device' },
    ],
    ['anna', 'POST /keys/upload', { device_keys: 7 }, { note: 'wrong type' }],
    [
      'anna',
      'POST /keys/upload',
      { one_time_keys: { 'signed_curve25519:AAA': { key, signatures: deviceKeys.signatures } } },
      { note: 'one-time key' },
    ],
    [
      'anna',
      'POST /keys/upload',
      { one_time_keys: { 'signed_curve25519:AAA': { key, signatures: deviceKeys.signatures } } },
      { note: 'the same one-time key' },
    ],
    [
      'anna',
      'POST /keys/upload',
      { one_time_keys: { 'signed_curve25519:AAA': { key: 'other', signatures: {} } } },
      { note: 'the same id with another key' },
    ],
    ['anna', 'POST /keys/upload', { one_time_keys: { malformed: key } }, { note: 'malformed key id' }],
    [
      'anna',
      'POST /keys/upload',
      {
        fallback_keys: {
          'signed_curve25519:FFF': { key, fallback: true, signatures: deviceKeys.signatures },
        },
      },
      { note: 'fallback key' },
    ],
    ['ben', 'POST /keys/query', { device_keys: { '{anna}': [] } }],
    [
      'ben',
      'POST /keys/query',
      { device_keys: { '{anna}': ['UNKNOWN'], '{ben}': [] } },
      { note: 'unknown device' },
    ],
    ['ben', 'POST /keys/query', { device_keys: { '@unknown:{server}': [] } }, { note: 'unknown user' }],
    ['ben', 'POST /keys/query', { device_keys: { '{anna}': 'x' } }, { note: 'wrong type' }],
    ['ben', 'POST /keys/query', { device_keys: { 'not-a-user': [] } }, { note: 'malformed user id' }],
    ['ben', 'POST /keys/query', {}, { note: 'empty' }],
    [
      'ben',
      'POST /keys/claim',
      { one_time_keys: { '{anna}': { '{anna-device}': 'signed_curve25519' } } },
      { note: 'one-time key' },
    ],
    [
      'ben',
      'POST /keys/claim',
      { one_time_keys: { '{anna}': { '{anna-device}': 'signed_curve25519' } } },
      { note: 'fallback key' },
    ],
    [
      'ben',
      'POST /keys/claim',
      { one_time_keys: { '{anna}': { '{anna-device}': 'unknown' } } },
      { note: 'unknown algorithm' },
    ],
    [
      'ben',
      'POST /keys/claim',
      { one_time_keys: { '{anna}': { UNKNOWN: 'signed_curve25519' } } },
      { note: 'unknown device' },
    ],
    [
      'ben',
      'POST /keys/claim',
      { one_time_keys: { '@unknown:{server}': { A: 'signed_curve25519' } } },
      { note: 'unknown user' },
    ],
    ['ben', 'POST /keys/claim', {}, { note: 'empty' }],
    ['anna', 'POST /keys/device_signing/upload', { master_key: signing('master') }],
    [
      'anna',
      'POST /keys/device_signing/upload',
      {
        master_key: {
          ...signing('master'),
          keys: {
            [`ed25519:${otherPublicKey}`]: otherPublicKey,
          },
        },
      },
      { note: 'another one' },
    ],
    [
      'anna',
      'POST /keys/device_signing/upload',
      { self_signing_key: otherCrossSigningKey('self_signing'), auth },
      { note: 'without a signature' },
    ],
    [
      'anna',
      'POST /keys/device_signing/upload',
      { master_key: { ...signing('master'), user_id: '{ben}' }, auth },
      { note: 'of another user' },
    ],
    [
      'anna',
      'POST /keys/device_signing/upload',
      { master_key: { ...signing('self_signing') }, auth },
      { note: 'of another usage' },
    ],
    ['anna', 'POST /keys/device_signing/upload', { master_key: 7 }, { note: 'wrong type' }],
    ['anna', 'POST /keys/device_signing/upload', {}, { note: 'empty' }],
    ['ben', 'POST /keys/query', { device_keys: { '{anna}': [] } }, { note: 'with a master key' }],
    ['anna', 'POST /keys/signatures/upload', {}, { note: 'empty' }],
    ['anna', 'POST /keys/signatures/upload', { '{anna}': { '{anna-device}': deviceKeys } }],
    [
      'anna',
      'POST /keys/signatures/upload',
      { '{ben}': { UNKNOWN: { ...deviceKeys, user_id: '{ben}', device_id: 'UNKNOWN' } } },
      { note: 'unknown device' },
    ],
    ['anna', 'POST /keys/signatures/upload', { '{anna}': 7 }, { note: 'wrong type' }],
    ['anna', 'GET /keys/changes?from=malformed&to=malformed'],
    ['anna', 'GET /keys/changes'],
    ['anna', 'GET /room_keys/version'],
    ['anna', 'POST /room_keys/version', backup, { save: { version: 'version' } }],
    ['anna', 'POST /room_keys/version', {}, { note: 'empty' }],
    ['anna', 'GET /room_keys/version', undefined, { note: 'made' }],
    ['anna', 'GET /room_keys/version/{version}'],
    ['anna', 'GET /room_keys/version/99'],
    ['anna', 'GET /room_keys/version/malformed'],
    [
      'anna',
      'PUT /room_keys/version/{version}',
      { ...backup, auth_data: { public_key: key, more: 1 }, version: '{version}' },
    ],
    [
      'anna',
      'PUT /room_keys/version/{version}',
      { ...backup, algorithm: 'other' },
      { note: 'another algorithm' },
    ],
    [
      'anna',
      'PUT /room_keys/version/{version}',
      { ...backup, version: '99' },
      { note: 'another version in the body' },
    ],
    ['anna', 'PUT /room_keys/version/99', backup],
    ['anna', 'PUT /room_keys/keys/!r:example.org/S1?version={version}', session],
    [
      'anna',
      'PUT /room_keys/keys/!r:example.org/S1?version={version}',
      { ...session, first_message_index: 9 },
      { note: 'a worse one' },
    ],
    ['anna', 'PUT /room_keys/keys/!r:example.org/S1?version={version}', {}, { note: 'empty' }],
    ['anna', 'PUT /room_keys/keys/!r:example.org/S1?version=99', session],
    ['anna', 'PUT /room_keys/keys/!r:example.org/S1', session],
    ['anna', 'PUT /room_keys/keys/!r:example.org?version={version}', { sessions: { S2: session } }],
    [
      'anna',
      'PUT /room_keys/keys?version={version}',
      { rooms: { '!q:example.org': { sessions: { S3: session } } } },
    ],
    ['anna', 'GET /room_keys/keys?version={version}'],
    ['anna', 'GET /room_keys/keys/!r:example.org?version={version}'],
    ['anna', 'GET /room_keys/keys/!r:example.org/S1?version={version}'],
    ['anna', 'GET /room_keys/keys/!r:example.org/UNKNOWN?version={version}'],
    ['anna', 'GET /room_keys/keys/!unknown:example.org?version={version}'],
    ['anna', 'GET /room_keys/keys?version=99'],
    ['anna', 'GET /room_keys/keys'],
    ['anna', 'DELETE /room_keys/keys/!r:example.org/S1?version={version}'],
    ['anna', 'DELETE /room_keys/keys/!r:example.org?version={version}'],
    ['anna', 'DELETE /room_keys/keys?version={version}'],
    ['anna', 'DELETE /room_keys/version/{version}'],
    ['anna', 'DELETE /room_keys/version/{version}', undefined, { note: 'again' }],
    ['anna', 'PUT /sendToDevice/org.example.x/1', { messages: { '{ben}': { '*': { a: 1 } } } }],
    ['anna', 'PUT /sendToDevice/org.example.x/2', { messages: { '{ben}': { UNKNOWN: { a: 1 } } } }],
    ['anna', 'PUT /sendToDevice/org.example.x/3', {}, { note: 'empty' }],
    ['anna', 'PUT /sendToDevice/org.example.x/4', { messages: 7 }, { note: 'wrong type' }],
    [
      'anna',
      'PUT /sendToDevice/org.example.x/5',
      { messages: { 'not-a-user': { A: {} } } },
      { note: 'malformed user id' },
    ],
    ['server', 'GET /_matrix/federation/v1/user/devices/{anna}'],
    ['server', 'GET /_matrix/federation/v1/user/devices/@unknown:{server}'],
    ['server', 'GET /_matrix/federation/v1/user/devices/@unknown:example.org'],
    ['server', 'POST /_matrix/federation/v1/user/keys/query', { device_keys: { '{anna}': [] } }],
    ['server', 'POST /_matrix/federation/v1/user/keys/query', {}, { note: 'empty' }],
    [
      'server',
      'POST /_matrix/federation/v1/user/keys/claim',
      { one_time_keys: { '{anna}': { '{anna-device}': 'signed_curve25519' } } },
    ],
    ['server', 'POST /_matrix/federation/v1/user/keys/claim', {}, { note: 'empty' }],
  ],
};
