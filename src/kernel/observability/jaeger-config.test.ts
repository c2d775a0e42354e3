import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readJaegerConfig } from './jaeger-config.ts';

describe('readJaegerConfig', () => {
  it('returns the defaults of the Jaeger client for an empty jaeger_config', () => {
    const { settings, problems } = readJaegerConfig({});
    assert.deepEqual(problems, []);
    assert.deepEqual(settings.sampler, { type: 'probabilistic', probability: 0.001 });
    assert.deepEqual(
      [settings.isEnabled, settings.host, settings.header],
      [true, 'localhost', 'uber-trace-id'],
    );
  });

  it('reads the sampler, the agent, tags and the settings of the reporter', () => {
    const { settings, problems } = readJaegerConfig({
      sampler: { type: 'ratelimiting', param: 2.5 },
      logging: true,
      local_agent: { reporting_host: 'jaeger.example.org' },
      service_name: 'chat',
      tags: { zone: 1 },
      reporter_flush_interval: 3,
      max_tag_value_length: 10,
    });
    assert.deepEqual(problems, []);
    assert.deepEqual(
      [settings.sampler, settings.logging, settings.host, settings.serviceName, settings.tags],
      [{ type: 'ratelimiting', perSecond: 2.5 }, true, 'jaeger.example.org', 'chat', { zone: '1' }],
    );
    assert.deepEqual([settings.flushInterval, settings.maxValueLength], [3_000, 10]);
    assert.deepEqual(readJaegerConfig({ sampler: { type: 'const', param: 0 } }).settings.sampler, {
      type: 'const',
      records: false,
    });
    assert.equal(readJaegerConfig({ enabled: false }).settings.isEnabled, false);
  });

  it('reports invalid values as errors, and members without effect as notices', () => {
    const problemsOf = (config: Record<string, unknown>) =>
      readJaegerConfig(config).problems.map(({ path, isError }) => [path, isError]);
    assert.deepEqual(problemsOf({ sampler: { type: 'some' }, logging: true }), [['sampler.type', true]]);
    assert.deepEqual(problemsOf({ sampler: { type: 'probabilistic', param: 2 } }), [['sampler.param', true]]);
    assert.deepEqual(problemsOf({ sampler: 'const', tags: [], reporter_queue_size: '5' }), [
      ['sampler', true],
      ['tags', true],
      ['reporter_queue_size', true],
    ]);
    assert.deepEqual(problemsOf({ local_agent: { reporting_port: 6831 }, propagation: 'b3' }), [
      ['propagation', false],
      ['local_agent.reporting_port', false],
    ]);
  });
});
