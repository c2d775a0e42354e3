import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { skippableClock } from '../../../test/support/clocks/skippable-clock.ts';
import { createLogger, createMetrics } from '../../kernel/observability/index.ts';
import { moduleMapper } from '../logins/user-mappings.ts';
import { CallbackFailure, ModuleCalls } from './module-calls.ts';

describe('ModuleCalls', () => {
  const open = async () => {
    const log: Record<string, unknown>[] = [];
    const destination = { write: (line: string) => void log.push(JSON.parse(line)) };
    const clock = skippableClock();
    const metrics = await createMetrics();
    const calls = new ModuleCalls({ clock, metrics, log: createLogger({ level: 'warn', destination }) });
    return { calls, clock, metrics, log };
  };

  it('logs the module whose code has blocked the event loop, and logs no module for code of the server', async () => {
    const { calls, log, metrics } = await open();
    calls.context.files.add('slow', 'file:///modules/slow.ts');
    calls.claimStall({ frames: [`${import.meta.url}:1`, 'node:internal/timers:5'] });
    assert.equal(log.length, 0);
    calls.claimStall({ frames: ['file:///modules/node_modules/x/x.js:9', 'file:///modules/slow.ts:12'] });
    const [line] = log;
    assert.deepEqual(
      [line?.['msg'], line?.['module'], line?.['frame']],
      ['A module blocked the process for seconds', 'slow', 'file:///modules/slow.ts:12'],
    );
    assert.match(
      await metrics.render(),
      /failures_total\{module="slow",callback="own code",reason="blocking"\} 1/,
    );
  });

  it('does not call a module with 1,000 unanswered calls until it answers one of them', async () => {
    const { calls, clock, metrics } = await open();
    const waiting: PromiseWithResolvers<string>[] = [];
    const hang = () => {
      waiting.push(Promise.withResolvers());
      return waiting.at(-1)!.promise;
    };
    const failed = Array.from({ length: 1_000 }, () =>
      calls.run('hanging', 'checkEvent', hang).catch((error: unknown) => error),
    );
    clock.advance(10_000);
    for (const error of await Promise.all(failed)) assert.ok(error instanceof CallbackFailure);
    assert.match(await metrics.render(), /server_module_unanswered_calls\{module="hanging"\} 1000/);
    await assert.rejects(calls.run('hanging', 'checkEvent', hang), CallbackFailure);
    assert.equal(waiting.length, 1_000);
    assert.equal(await calls.run('other', 'checkEvent', () => 'allow'), 'allow');
    waiting[0]!.resolve('late');
    await waiting[0]!.promise;
    assert.equal(await calls.run('hanging', 'checkEvent', async () => 'allow'), 'allow');
  });

  it('fails a login with 500 M_UNKNOWN when the module that maps its user does not answer within 10 seconds', async () => {
    const { calls, clock, log } = await open();
    const hang = () => new Promise(() => {});
    const mapper = moduleMapper('mapping', { idOf: hang, map: hang }, calls);
    for (const answer of [mapper.idOf({}), mapper.map({})]) {
      clock.advance(10_000);
      await assert.rejects(answer!, { status: 500, errcode: 'M_UNKNOWN' });
    }
    assert.deepEqual(
      log.map(({ module, callback, reason }) => [module, callback, reason]),
      [
        ['mapping', 'idOf', 'timeout'],
        ['mapping', 'map', 'timeout'],
      ],
    );
  });
});
