import { systemClock } from '../../kernel/clock.ts';
import { CommandFailure } from '../failure.ts';
import { column, outputOf, writeDetails, writeDone, writeList } from './output.ts';
import type { AdministrationFlags } from './server-choice.ts';
import { openSession } from './session.ts';
import { timeIn } from './times.ts';

type Row = Readonly<Record<string, unknown>>;

const tokensPath = '/_synapse/admin/v1/registration_tokens';
const pathOf = (token: string) => `${tokensPath}/${encodeURIComponent(token)}`;

/** `hearth token list`: lists the registration tokens. */
export async function listTokens(
  flags: AdministrationFlags & { readonly valid?: boolean; readonly invalid?: boolean },
): Promise<void> {
  if (flags.valid && flags.invalid) throw new CommandFailure('give either --valid or --invalid');
  const session = await openSession(flags);
  const query = flags.valid ? '?valid=true' : flags.invalid ? '?valid=false' : '';
  const { registration_tokens: tokens } = await session.call('GET', `${tokensPath}${query}`);
  const columns = [
    column('Token', 'token'),
    { title: 'Uses allowed', value: (row: Row) => String(row['uses_allowed'] ?? 'any'), isNumber: true },
    { ...column('Pending', 'pending'), isNumber: true },
    { ...column('Completed', 'completed'), isNumber: true },
    column('Expires', 'expiry_time'),
  ];
  await writeList(outputOf(flags), columns, [tokens as Row[]], 'There are no tokens.');
}

/** The options that set the limits of a registration token. */
export interface TokenLimits extends AdministrationFlags {
  /** A number, or `any`. */
  readonly uses?: string;
  /** A time, or `never`. */
  readonly expires?: string;
}

/** `hearth token create`: creates a registration token, and prints the token. */
export async function createToken(flags: TokenLimits & { readonly token?: string }): Promise<void> {
  const limits = limitsOf(flags);
  const session = await openSession(flags);
  const body = { ...limits, ...(flags.token !== undefined && { token: flags.token }) };
  const created = await session.call('POST', `${tokensPath}/new`, body);
  writeDone(outputOf(flags), String(created['token']), created);
}

/** `hearth token change`: changes the limits of a token. */
export async function changeToken(token: string, flags: TokenLimits): Promise<void> {
  const limits = limitsOf(flags);
  if (Object.keys(limits).length === 0) throw new CommandFailure('give --uses or --expires');
  const session = await openSession(flags);
  writeDetails(outputOf(flags), await session.call('PUT', pathOf(token), limits));
}

/** `hearth token delete`: deletes a token. */
export async function deleteToken(token: string, flags: AdministrationFlags): Promise<void> {
  const session = await openSession(flags);
  const answer = await session.call('DELETE', pathOf(token));
  writeDone(outputOf(flags), `Deleted the token ${token}.`, answer);
}

/** Returns the limits as requests contain them. @throws CommandFailure when `uses` or `expires` is not valid */
function limitsOf({ uses, expires }: TokenLimits): Record<string, number | null> {
  if (uses !== undefined && uses !== 'any' && !/^\d{1,9}$/.test(uses)) {
    throw new CommandFailure(`--uses ${uses}: expected a number or any`);
  }
  return {
    ...(uses !== undefined && { uses_allowed: uses === 'any' ? null : Number(uses) }),
    ...(expires !== undefined && {
      expiry_time: expires === 'never' ? null : timeIn(expires, 'future', systemClock.now()),
    }),
  };
}
