import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodePosition, decodeSyncPosition, encodePosition, encodeSyncPosition } from './index.ts';

test('decodePosition parses the tokens of classic and sliding sync, decodeSyncPosition those of classic sync, and both reject other texts with M_INVALID_PARAM', () => {
  assert.equal(decodePosition(encodePosition(4711)), 4711);
  assert.equal(decodePosition('c1_281474976710655_3_4711'), 4711);
  assert.throws(() => decodeSyncPosition('c1_1_3_4711'), { errcode: 'M_INVALID_PARAM' });
  for (const position of [
    { position: 4711, toDevice: 4711 },
    { position: 4711, toDevice: 4600 },
    { position: 0, toDevice: 0 },
  ]) {
    assert.deepEqual(decodeSyncPosition(encodeSyncPosition(position)), position);
    assert.equal(decodePosition(encodeSyncPosition(position)), position.position);
  }
  for (const token of [
    '',
    's1_',
    's1_-1',
    's1_1e3',
    's2_1',
    's2_1_2',
    's2_2_',
    's1_1_1',
    '4711',
    's1_99999999999999999999',
    't1_1_1',
    'c1_1_4711',
    'c1_1_1_9999999999999999',
  ]) {
    for (const decode of [decodePosition, decodeSyncPosition])
      assert.throws(() => decode(token), { errcode: 'M_INVALID_PARAM' }, token);
  }
});
