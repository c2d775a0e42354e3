import { DatabaseError as ServerError } from 'pg';
import { DatabaseError, UniqueViolation } from '../errors.ts';

const uniqueViolation = '23505';
/** serialization_failure and deadlock_detected: a retry may succeed. */
const conflicts = ['40001', '40P01'];
/**
 * admin_shutdown, crash_shutdown, cannot_connect_now, idle_session_timeout: the session is lost, but the
 * server will return.
 */
const interruptions = ['57P01', '57P02', '57P03', '57P05'];

/** Error codes of the operating system for connections that break or cannot be opened. */
const broken = /^(ECONNREFUSED|ECONNRESET|EPIPE|ENOENT|ETIMEDOUT)$/;

/** Messages of the driver about connections that break or cannot be opened. */
const brokenMessage = /^(Connection terminated|Client has encountered a connection error|timeout exceeded)/;

/** The statement conflicted with another transaction. */
export class Conflict extends DatabaseError {
  override name = 'Conflict';
}

/** A connection cannot be opened, or has broken. */
export class Disconnected extends DatabaseError {
  override name = 'Disconnected';
}

/** Converts an error of the driver. The message omits the server's detail, which quotes values. */
export function typedError(error: unknown): Error {
  if (error instanceof DatabaseError) return error;
  if (!(error instanceof Error)) return new Error(String(error));
  if (error instanceof ServerError) return fromServer(error);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  if (broken.test(code) || brokenMessage.test(error.message)) return new Disconnected(error.message, code);
  return error;
}

function fromServer(error: ServerError): Error {
  const code = error.code ?? '';
  if (code === uniqueViolation) return new UniqueViolation(error.table ?? 'unknown', code);
  if (conflicts.includes(code)) return new Conflict(error.message, code);
  if (interruptions.includes(code) || code.startsWith('08')) return new Disconnected(error.message, code);
  return new DatabaseError(error.message, code);
}
