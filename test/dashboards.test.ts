import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parse } from 'yaml';
import { startTestServer, type TestServer } from './support/servers/server.ts';

const contrib = join(import.meta.dirname, '..', 'contrib');

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Words of PromQL that are no functions. Functions are recognized by the parenthesis after their name. */
const keywords: ReadonlySet<string> = new Set(['by', 'on', 'and', 'or', 'unless', 'ignoring', 'without']);

/** Series and labels that Prometheus adds. */
const ofPrometheus: ReadonlySet<string> = new Set(['up', 'job', 'instance', 'le']);

/** Returns the names of series in a query, with the labels that it selects or groups by. */
function namesIn(query: string): { readonly series: readonly string[]; readonly labels: readonly string[] } {
  const labels: string[] = [];
  const rest = query
    .replace(/\b(?:by|on)\s*\(([^)]*)\)/g, (_, names: string) => {
      labels.push(...names.split(',').map((name) => name.trim()));
      return '';
    })
    .replace(/\{([^}]*)\}/g, (_, matchers: string) => {
      labels.push(...[...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, name]) => name!));
      return ' ';
    })
    .replace(/\[[^\]]*\]/g, ' ');
  const words = [...rest.matchAll(/\b[a-z_]\w*(?!\w)(?!\s*\()/gi)].map(([word]) => word);
  return { series: words.filter((word) => !keywords.has(word)), labels };
}

describe('the dashboard and the alert rules of contrib', () => {
  let server: TestServer;
  /** Labels of each series, by its name; a metric without values has none. */
  const labelsOf = new Map<string, Set<string>>();

  before(async () => {
    let addresses: readonly string[] = [];
    const localhost = { type: 'http' as const, port: 0, bind_addresses: ['127.0.0.1'] };
    server = await startTestServer({
      database: 'sqlite',
      config: {
        observability: { enable_metrics: true },
        http: {
          listeners: [
            { ...localhost, resources: [{ names: ['client'] }] },
            { ...localhost, resources: [{ names: ['metrics'] }] },
          ],
        },
      },
      listening: (found) => {
        addresses = found;
      },
    });
    const { token } = await server.register('ann');
    await server.api('POST', '/_matrix/client/v3/createRoom', { token, body: {} });
    const text = await (await fetch(`${addresses[1]}/metrics`)).text();
    for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
      for (const suffix of type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''])
        labelsOf.set(name! + suffix, new Set());
    }
    for (const [, name, labels] of text.matchAll(/^(\w+)\{([^}]*)\} /gm)) {
      for (const [, label] of labels!.matchAll(/(\w+)="/g)) labelsOf.get(name!)?.add(label!);
    }
  });
  after(() => server.stop());

  const assertKnown = (query: string, what: string) => {
    const { series, labels } = namesIn(query);
    assert.ok(series.length > 0, `${what} has a query without series: ${query}`);
    const knownLabels = new Set(ofPrometheus);
    // A metric without values has no labels yet, so that the labels of its queries cannot be checked.
    let canCheckLabels = true;
    for (const name of series) {
      if (ofPrometheus.has(name)) continue;
      const metricLabels = labelsOf.get(name);
      assert.ok(metricLabels, `${what} queries ${name}, which the server does not have`);
      for (const label of metricLabels) knownLabels.add(label);
      canCheckLabels &&= metricLabels.size > 0 || labels.length === 0;
    }
    if (canCheckLabels)
      for (const label of labels) assert.ok(knownLabels.has(label), `${what} queries the label ${label}`);
  };

  it('namesIn returns the names of the series and labels in a query', () => {
    assert.deepEqual(
      namesIn('sum by (a, le) (rate(x_total{b="c", d=~"e|f"}[5m])) / on (g) (y + 1e9) > 0.5 or z'),
      { series: ['x_total', 'y', 'z'], labels: ['a', 'le', 'g', 'b', 'd'] },
    );
  });

  it('queries only series and labels that a running server has', () => {
    const { panels, templating } = JSON.parse(readFileSync(join(contrib, 'grafana', 'hearth.json'), 'utf8'));
    const shown = (panels as Panel[]).filter(({ type }) => type !== 'row');
    assert.ok(shown.length > 30);
    for (const { title, targets = [] } of shown) {
      assert.ok(targets.length > 0, title);
      for (const { expr } of targets) assertKnown(expr, `the panel ${title}`);
    }
    for (const { query } of templating.list as { query: string }[]) {
      const [, series] = /label_values\((\w+)/.exec(query) ?? [];
      if (series) assert.ok(labelsOf.has(series), query);
    }
    const rules = parse(readFileSync(join(contrib, 'prometheus', 'hearth.rules.yaml'), 'utf8'));
    const alerts = (rules.groups as { rules: Rule[] }[]).flatMap((group) => group.rules);
    assert.ok(alerts.length > 10);
    for (const { alert, expr, annotations } of alerts) {
      assertKnown(expr, `the alert ${alert}`);
      assert.ok(annotations['summary'], alert);
    }
  });

  it('shows all metrics of requests, databases, received events, jobs, media and streams, except the four that this test lists', () => {
    const dashboard = readFileSync(join(contrib, 'grafana', 'hearth.json'), 'utf8');
    const areas = ['http', 'database', 'federation_incoming', 'jobs', 'media', 'stream'];
    const omitted = [...labelsOf.keys()].filter(
      (name) =>
        areas.some((area) => name.startsWith(`server_${area}_`)) &&
        !dashboard.includes(name.replace(/_(bucket|sum|count)$/, '')),
    );
    assert.deepEqual(omitted, [
      'server_database_transactions_total',
      'server_database_flushes_total',
      'server_database_moved_rows_total',
      'server_media_files',
    ]);
  });
});
