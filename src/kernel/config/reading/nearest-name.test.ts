import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearestName, suggestion } from './nearest-name.ts';

const known = ['enable_registration', 'bcrypt_rounds', 'listeners', 'email', 'stats', 'rc_message'];

test('a slip of the finger leads to the name that was meant', () => {
  assert.equal(nearestName('enable_registraton', known), 'enable_registration');
  assert.equal(nearestName('bcrypt_ruonds', known), 'bcrypt_rounds');
  assert.equal(nearestName('Listener', known), 'listeners');
  assert.equal(nearestName('emial', known), 'email');
  assert.equal(nearestName('rc_mesages', known), 'rc_message');
});

test('a name that is like none leads nowhere', () => {
  for (const name of ['redis', 'x', '', 'worker_name', 'experimental_features']) {
    assert.equal(nearestName(name, known), undefined, name);
    assert.equal(suggestion(name, known), '');
  }
});
