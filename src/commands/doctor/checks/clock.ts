import { OutboundError } from '../../../kernel/outbound/index.ts';
import type { Examination } from '../examination.ts';
import { error, type Finding, note, ok, warning } from '../finding.ts';
import { requestUrl } from './public-requests.ts';

/**
 * Differences up to this number of milliseconds are ignored, since headers have whole seconds and answers take time.
 */
const maxDifference = 5_000;

/** Maximum difference in milliseconds that is only a warning. A larger difference is an error. */
const maxTolerable = 60_000;

/** Compares the clock of this machine with the clock of the first other server in `trusted_key_servers` that answers. */
export async function checkClock(examination: Examination): Promise<readonly Finding[]> {
  const { clock, configuration } = examination;
  for (const { server_name: server } of configuration.federationClient.trusted_key_servers) {
    if (server === configuration.server.server_name) continue;
    const before = clock.now();
    const answer = await requestUrl(examination, new URL(`https://${server}/_matrix/key/v2/server`));
    const date = answer instanceof OutboundError ? Number.NaN : Date.parse(String(answer.headers['date']));
    if (Number.isNaN(date)) continue;
    const difference = (before + clock.now()) / 2 - date;
    if (Math.abs(difference) <= maxDifference)
      return [ok('clock', `The clock agrees with that of ${server}.`)];
    const text = `The clock of this machine is ${Math.round(Math.abs(difference) / 1_000)} seconds ${difference > 0 ? 'ahead of' : 'behind'} that of ${server}. Times of messages are wrong, and keys and certificates expire too early or too late.`;
    const fix = 'timedatectl set-ntp true';
    return [Math.abs(difference) > maxTolerable ? error('clock', text, fix) : warning('clock', text, fix)];
  }
  return [
    note(
      'clock-unknown',
      'No other server of trusted_key_servers has given its time, so the clock is not compared.',
      'timedatectl shows whether it is synchronized',
    ),
  ];
}
