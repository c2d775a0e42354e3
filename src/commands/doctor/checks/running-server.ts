import { ownCommand } from '../../../kernel/process/index.ts';
import { adminApiAt } from '../../admin-api.ts';
import { CommandFailure } from '../../failure.ts';
import { localServer } from '../../local-server.ts';
import { type Examination, flagsOf } from '../examination.ts';
import { error, type Finding, ok, warning } from '../finding.ts';

/** The state of the configured server, according to its answers at its own listener. */
export interface RunningServer {
  readonly findings: readonly Finding[];
  /** Whether the server answers, healthy or not. */
  readonly runs: boolean;
}

/**
 * Checks the running server by requests to its listener.
 * @param isDatabaseOpen whether a server has the database open
 */
export async function checkRunningServer(
  examination: Examination,
  isDatabaseOpen: boolean,
): Promise<RunningServer> {
  let address = '';
  try {
    const server = localServer(examination.configuration);
    ({ address } = server);
    const api = adminApiAt(server);
    const [health, ready] = [await api.send('GET', '/health'), await api.send('GET', '/health/ready')];
    return {
      runs: health.status === 200 || health.status === 503,
      findings: [findingOf(address, health, ready)],
    };
  } catch (cause) {
    if (!(cause instanceof CommandFailure)) throw cause;
    if (address === '')
      return { runs: false, findings: [error('listener-missing', cause.message, listenerExample)] };
    return { runs: false, findings: [notRunning(address, examination, isDatabaseOpen)] };
  }
}

const listenerExample =
  'listeners: [{ port: 8008, type: http, bind_addresses: ["127.0.0.1"], resources: [{ names: [client, federation] }] }]';

interface Answer {
  readonly status: number;
  readonly text: string;
}

function findingOf(address: string, health: Answer, ready: Answer): Finding {
  if (health.status === 503) {
    return error(
      'server-unhealthy',
      `The server at ${address} does not work: ${health.text}.`,
      'see its log for the reason; journalctl -u hearth -n 50',
    );
  }
  if (health.status !== 200 || health.text !== 'OK') {
    return error(
      'listener-foreign',
      `A program that is not Hearth answers at ${address} (status ${health.status}).`,
      `ss -ltnp shows which one; give the listener another port: ${ownCommand} config explain 'listeners[].port'`,
    );
  }
  if (ready.status === 503) {
    return warning(
      'server-not-ready',
      `The server at ${address} takes no requests: ${ready.text}.`,
      `wait, and call ${ownCommand} doctor again`,
    );
  }
  return ok('server', `The server at ${address} works.`);
}

function notRunning(address: string, examination: Examination, isDatabaseOpen: boolean): Finding {
  if (isDatabaseOpen) {
    return error(
      'server-elsewhere',
      `A server has the database open, and none answers at ${address}. It may be starting, run on another machine, or have another configuration.`,
      `restart it with this configuration: ${ownCommand} serve${flagsOf(examination)}`,
    );
  }
  return warning(
    'server-stopped',
    `No server answers at ${address}.`,
    `${ownCommand} serve${flagsOf(examination)} (or: systemctl start hearth)`,
  );
}
