import assert from 'node:assert/strict';
import { test } from 'node:test';
import { getRoomVersion, type RoomVersion, roomVersions } from './room-versions.ts';

/** Returns the id of the first version for which `holds` is true. */
function since(holds: (version: RoomVersion) => boolean): string | undefined {
  return [...roomVersions.values()].find(holds)?.id;
}

test('roomVersions lists versions 1 to 12 in order, then the versions of MSC3757, and no others', () => {
  const stable = Array.from({ length: 12 }, (_, index) => String(index + 1));
  const ids = [...stable, 'org.matrix.msc3757.10', 'org.matrix.msc3757.11'];
  assert.deepEqual(
    ids.filter((id) => getRoomVersion(id)?.stable),
    stable,
  );
  assert.deepEqual([...roomVersions.keys()], ids);
  assert.deepEqual(
    [...roomVersions.values()].map(({ id }) => id),
    ids,
  );
  assert.equal(getRoomVersion('13'), undefined);
  assert.equal(getRoomVersion('__proto__'), undefined);
});

test('roomVersions introduces each difference in the version that the specification names', () => {
  assert.equal(
    since((v) => v.stateResolution === 'v2'),
    '2',
  );
  assert.equal(
    since((v) => v.eventReferences === 'ids' && v.eventId === 'hash, base64' && !v.redactionAuthRule),
    '3',
  );
  assert.equal(
    since((v) => v.eventId === 'hash, base64url'),
    '4',
  );
  assert.equal(
    since((v) => v.enforceKeyValidity),
    '5',
  );
  assert.equal(
    since((v) => v.strictCanonicalJson && !v.aliasesAuthRule && v.notificationLevelsChecked),
    '6',
  );
  assert.equal(
    since((v) => v.knock),
    '7',
  );
  assert.equal(
    since((v) => v.restricted),
    '8',
  );
  assert.equal(
    since((v) => v.redaction === 'v9'),
    '9',
  );
  assert.equal(
    since((v) => v.knockRestricted && v.powerLevelNumbers === 'integers'),
    '10',
  );
  assert.equal(
    since((v) => v.redactsIn === 'content' && v.creator === 'sender'),
    '11',
  );
  assert.equal(
    since((v) => v.roomId === 'create event' && !v.createInAuthEvents && v.privilegedCreators),
    '12',
  );
});

test('roomVersions are frozen', () => {
  const version = getRoomVersion('12')! as { stable: boolean };
  assert.throws(() => {
    version.stable = false;
  }, TypeError);
});
