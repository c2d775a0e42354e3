import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { createLogger, createMetrics, observeEventLoop, redactUrl } from './index.ts';

describe('redactUrl', () => {
  it('redacts secret query parameters and keeps the rest', () => {
    const cases = [
      ['/sync', '/sync'],
      ['/sync?since=s1&access_token=abc&timeout=0', '/sync?since=s1&access_token=<redacted>&timeout=0'],
      ['/login?loginToken=abc', '/login?loginToken=<redacted>'],
      ['/cas?session=a&ticket=b', '/cas?session=<redacted>&ticket=<redacted>'],
      ['/oidc?code=a&state=b', '/oidc?code=<redacted>&state=<redacted>'],
      ['/x?%61ccess_token=abc', '/x?%61ccess_token=<redacted>'],
      ['/x?ACCESS_TOKEN=abc', '/x?ACCESS_TOKEN=<redacted>'],
      ['/x?client_secret=a&token=b&sid=c', '/x?client_secret=<redacted>&token=<redacted>&sid=c'],
      ['/x?a?access_token=abc', '/x?a?access_token=abc'],
      ['/x?%zz=abc&flag', '/x?%zz=abc&flag'],
    ];
    for (const [url, expected] of cases) assert.equal(redactUrl(url!), expected);
  });

  it('redacts registration tokens in paths', () => {
    const path = '/_synapse/admin/v1/registration_tokens';
    assert.equal(redactUrl(`${path}/welcome`), `${path}/<redacted>`);
    assert.equal(
      redactUrl(`${path}/welcome?valid=true&token=a`),
      `${path}/<redacted>?valid=true&token=<redacted>`,
    );
    for (const other of [path, `${path}?valid=true`, `${path}/new`, '/x?a=/registration_tokens/b']) {
      assert.equal(redactUrl(other), other);
    }
  });
});

describe('createLogger', () => {
  it('writes one line of JSON per entry of its level and above', () => {
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

  it('logs name, message, code, stack and causes of an error only', () => {
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
    assert.match(err.stack, /observability\.test/);
    assert.doesNotMatch(lines[0]!, /secret/);
    log.error({ err: 'a text' }, 'failed');
    assert.equal(JSON.parse(lines[1]!).err.message, 'a text');
  });
});

describe('createMetrics', () => {
  it('renders metrics of the process and the event loop lag', async () => {
    const metrics = await createMetrics();
    const stop = observeEventLoop(metrics);
    const lagIn = (text: string) =>
      Number(/^server_event_loop_lag_seconds\{percentile="100"\} (\S+)$/m.exec(text)?.[1]);
    const text = await eventually('a lag above zero', async () => {
      const shown = await metrics.render();
      return lagIn(shown) > 0 && shown;
    });
    stop();
    assert.match(text, /^process_resident_memory_bytes \d+/m);
    assert.match(metrics.contentType, /text\/plain/);
  });
});
