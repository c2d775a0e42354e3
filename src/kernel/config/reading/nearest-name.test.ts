import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearestName, suggestion } from './nearest-name.ts';

const known = ['enable_registration', 'bcrypt_rounds', 'listeners', 'email', 'stats', 'rc_message'];

test('nearestName finds the name behind a typing mistake', () => {
  assert.equal(nearestName('enable_registraton', known), 'enable_registration');
  assert.equal(nearestName('bcrypt_ruonds', known), 'bcrypt_rounds');
  assert.equal(nearestName('Listener', known), 'listeners');
  assert.equal(nearestName('emial', known), 'email');
  assert.equal(nearestName('rc_mesages', known), 'rc_message');
});

test('nearestName finds nothing for a name that resembles no known name', () => {
  for (const name of ['redis', 'x', '', 'worker_name', 'experimental_features']) {
    assert.equal(nearestName(name, known), undefined, name);
    assert.equal(suggestion(name, known), '');
  }
});
