import { parseDsn } from '../kernel/observability/index.ts';
import { ownSoftware } from '../kernel/outbound/index.ts';
import { openHttpToConfiguredServers } from './http-to-configured-servers.ts';
import type { Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';

/** Starts to report logged errors to the service of `sentry.dsn`. Loads the code only where the option is set. */
export async function startErrorReports(kernel: Kernel, opened: OpenedSlices): Promise<void> {
  const { configuration, loggedErrors, serverName, clock, randomness, namedLog } = kernel;
  const { sentry, server_context: context } = configuration.observability;
  if (sentry.dsn === null || loggedErrors === undefined) return;
  const { ErrorReports } = await import('../kernel/error-reports/index.ts');
  const project = parseDsn(sentry.dsn);
  // Never true: the rules of the configuration refuse an invalid DSN.
  if (project === undefined) return;
  const { name, version } = ownSoftware();
  const http = openHttpToConfiguredServers(kernel, 'error_report_connection_pools', { maxPools: 1 });
  const reports = new ErrorReports(
    {
      project,
      origin: {
        release: `${name.toLowerCase()}@${version}`,
        serverName,
        environment: sentry.environment,
        context,
      },
      http,
      clock,
      randomness,
      log: namedLog('error-reports'),
    },
    loggedErrors,
  );
  opened.add('error reports', {
    async stop() {
      await reports.close();
      await http.close();
    },
  });
}
