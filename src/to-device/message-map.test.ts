import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type JsonObject, MatrixError } from '../protocol/index.ts';
import { parseMessageMap } from './message-map.ts';

describe('parseMessageMap', () => {
  it('returns the messages of arbitrary input unchanged or throws a MatrixError', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (messages) => {
        try {
          for (const [userId, devices] of parseMessageMap(messages as JsonObject)) {
            assert.deepEqual(Object.fromEntries(devices), messages[userId]);
          }
        } catch (error) {
          assert.ok(error instanceof MatrixError);
        }
      }),
    );
  });

  it('returns users and devices in the order of the request', () => {
    const userId = fc.stringMatching(/^[a-z]{1,10}$/).map((name) => `@${name}:test`);
    const devices = fc.dictionary(fc.string(), fc.dictionary(fc.string(), fc.jsonValue()));
    fc.assert(
      fc.property(fc.dictionary(userId, devices), (messages) => {
        const read = parseMessageMap(messages as JsonObject);
        const users = [...read].map(([user, contents]) => [user, Object.fromEntries(contents)] as const);
        assert.equal(JSON.stringify(Object.fromEntries(users)), JSON.stringify(messages));
      }),
    );
  });

  it('rejects with M_TOO_LARGE messages for users of more than 1,000 servers', () => {
    const messagesTo = (servers: number) =>
      Object.fromEntries(
        Array.from({ length: 2_000 }, (_, index) => [`@user${index}:host${index % servers}.test`, { A: {} }]),
      );
    assert.equal(parseMessageMap(messagesTo(1_000)).size, 2_000);
    assert.throws(() => parseMessageMap(messagesTo(1_001)), { errcode: 'M_TOO_LARGE', status: 413 });
  });
});
