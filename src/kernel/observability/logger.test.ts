import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLogger } from './logger.ts';

describe('createLogger', () => {
  it('writes one line of JSON for each entry at the level of the logger or above', () => {
    const lines: string[] = [];
    const log = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
    log.debug('below the level');
    const before = Date.now();
    log.child({ request: 'GET-1' }).warn({ room: '!a:b' }, 'that');
    const [entry, ...rest] = lines.map((line) => JSON.parse(line));
    assert.deepEqual(rest, []);
    assert.deepEqual([entry.level, entry.msg, entry.request, entry.room], ['warn', 'that', 'GET-1', '!a:b']);
    const time = Date.parse(entry.time);
    assert.ok(time >= before && time <= Date.now(), entry.time);
  });

  it('logs only the name, message, code, stack and causes of an error', () => {
    const lines: string[] = [];
    const log = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } });
    const cause = Object.assign(new Error('inside'), {
      code: 'ECONNRESET',
      headers: { authorization: 'secret' },
    });
    log.error({ err: new TypeError('outside', { cause }) }, 'failed');
    const { err } = JSON.parse(lines[0]!);
    assert.deepEqual(
      [err.name, err.message, err.cause.message, err.cause.code],
      ['TypeError', 'outside', 'inside', 'ECONNRESET'],
    );
    assert.match(err.stack, /logger\.test/);
    assert.doesNotMatch(lines[0]!, /secret/);
    log.error({ err: 'a text' }, 'failed');
    assert.equal(JSON.parse(lines[1]!).err.message, 'a text');
  });
});
