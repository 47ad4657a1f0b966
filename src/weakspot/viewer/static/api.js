// The server's answers. Every page belongs to one Run of the two that may be served: `run` goes with every question.

export const RUN = Number(new URLSearchParams(location.search).get("run")) || 0;
/** Of several lists of images to label, the one that this page shows. */
const OF = new URLSearchParams(location.search).get("of");

/** An answer that says why there is none. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Parameters as a query: what is empty is left out, lists are repeated. */
export function query(parameters) {
  const pairs = Object.entries(parameters).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((item) => [name, item]));
  const given = pairs.filter(([, item]) => item !== undefined && item !== null && item !== "");
  return new URLSearchParams(given.map(([name, item]) => [name, String(item)])).toString();
}

/** The address of something of the API, for pictures and downloads. */
export function address(path, parameters = {}) {
  const asked = query({ run: RUN || null, of: OF, ...parameters });
  return `/api${path}${asked ? `?${asked}` : ""}`;
}

async function answered(path, parameters, options) {
  let response;
  try {
    response = await fetch(address(path, parameters), options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("weakspot does not answer: is `weakspot view` still running?", 0);
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new ApiError(problem.error ?? `${path}: HTTP status ${response.status} instead of data`, response.status);
}

let waiting = 0;

/** The page counts as busy as long as an answer is awaited. */
async function busy(work) {
  const main = document.getElementById("main");
  waiting += 1;
  main?.setAttribute("aria-busy", "true");
  try {
    return await work();
  } finally {
    waiting -= 1;
    if (!waiting) main?.removeAttribute("aria-busy");
  }
}

const as = (kind) => (path, parameters, signal) => busy(async () => (await answered(path, parameters, { signal }))[kind]());

export const ask = as("json");
export const askBytes = as("arrayBuffer");
export const askBlob = as("blob");

const sent = (method, body) => ({ method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

/** Change something. */
export const send = (method, path, body, parameters) =>
  busy(async () => (await answered(path, parameters, sent(method, body))).json());

/** Send a file as it is. */
export async function sendFile(path, file, parameters) {
  return (await answered(path, parameters, { method: "POST", headers: { "Content-Type": "text/csv" }, body: file })).json();
}

/** Only the last of several questions counts: an earlier one is given up, and answers undefined. */
export function latest() {
  let running = new AbortController();
  return async (work) => {
    running.abort();
    const mine = (running = new AbortController());
    try {
      const answer = await work(mine.signal);
      return mine.signal.aborted ? undefined : answer;
    } catch (error) {
      if (mine.signal.aborted) return undefined;
      throw error;
    }
  };
}

/** Send something and offer the answer as a file. */
export async function download(path, body, parameters, name) {
  const answer = await busy(() => answered(path, parameters, sent("POST", body)));
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
