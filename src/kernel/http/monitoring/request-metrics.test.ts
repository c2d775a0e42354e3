import assert from 'node:assert/strict';
import { it } from 'node:test';
import { systemClock } from '../../clock.ts';
import { createMetrics, silentLogger } from '../../observability/index.ts';
import { createHttpServer, metricsRoute, route } from '../index.ts';

it('counts requests by operation, and serves the metrics only on listeners with the resource `metrics`', async () => {
  const metrics = await createMetrics();
  const listener = (name: 'client' | 'metrics') => ({
    name,
    bind: { kind: 'tcp' as const, port: 0, addresses: ['127.0.0.1'], tls: undefined },
    resources: [{ names: [name], compress: false }],
    forwarded: false,
    requestIdHeader: undefined,
  });
  const server = createHttpServer({
    listeners: [listener('client'), listener('metrics')],
    routes: [
      metricsRoute(metrics),
      route(
        { operationId: 'getVersions', method: 'GET', path: '/_proto/client/versions', auth: 'none' },
        () => ({}),
      ),
    ],
    authenticator: { authenticate: () => assert.fail() },
    log: silentLogger,
    clock: systemClock,
    metrics,
  });
  const [client, monitoring] = await server.start();
  try {
    await fetch(`${client}/_matrix/client/versions`);
    await fetch(`${client}/_matrix/client/nothing`);
    assert.equal((await fetch(`${client}/_synapse/metrics`)).status, 404);
    const text = await (await fetch(`${monitoring}/metrics`)).text();
    const count = /_count\{method="GET",operation="getVersions",status="200"\} 1$/m;
    assert.match(text, count);
    assert.match(text, /_count\{method="GET",operation="\*",status="404"\} 2$/m);
  } finally {
    await server.stop(100);
  }
});
